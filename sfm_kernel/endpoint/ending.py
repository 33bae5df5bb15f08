"""The end of a process, which closes its endpoints: what its daemon threads make of that.

They end with the process, in whatever they are. That their calls fail a moment before, since the
endpoints close, is no news for anybody.
"""

from __future__ import annotations

import threading

from sfm_kernel.errors import SFMError

_begun = False


def begin() -> None:
    """This process leaves its worlds because it ends: its daemon threads do not complain of it."""
    global _begun
    if _begun:
        return
    _begun, report = True, threading.excepthook

    def report_others(failed: threading.ExceptHookArgs) -> None:
        daemon = failed.thread is not None and failed.thread.daemon
        if not (daemon and issubclass(failed.exc_type, SFMError)):
            report(failed)

    threading.excepthook = report_others


def begin_at_exit() -> None:
    """The same, if the main thread has ended: what runs now was left for the process's exit."""
    if not threading.main_thread().is_alive():
        begin()


def has_begun() -> bool:
    """Whether ``begin`` was called."""
    return _begun
