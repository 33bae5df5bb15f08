"""The end of a process, which closes its endpoints while daemon threads may still use them.

Daemon threads end with the process, whatever they are doing. Their calls fail a moment earlier,
because the endpoints close; these errors are not reported.
"""

from __future__ import annotations

import threading

from sfm_kernel.errors import SFMError

_begun = False


def begin() -> None:
    """This process ends and leaves its worlds: errors of daemon threads about it are hidden."""
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
    """``begin``, if all threads have ended for which Python waits: the process is at its exit."""
    if not any(thread.is_alive() and not thread.daemon for thread in threading.enumerate()):
        begin()


def has_begun() -> bool:
    """Whether ``begin`` was called."""
    return _begun
