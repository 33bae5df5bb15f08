"""Tells a process that its owner has ended, for whatever reason.

``follow``: only the owner holds the other end of a pipe or a socket, which the kernel closes when
the owner ends; the pipe also carries the owner's orders. ``die_with``: the kernel sends a signal,
which ends even a process that holds the GIL; the owner must be the parent.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

_libc = ctypes.CDLL(None)  # loaded once, and not in each fork
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 1, 4, 36

Word = TypeVar("Word")


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent dies.

    Args:
        parent: the parent's process id, taken before this process began. If the parent has died
            since then, this process ends at once.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # the parent died before the call
        os._exit(1)


def adopt_orphans() -> None:
    """From now on, a process whose parent has ended becomes a child of this one, if one of its
    ancestors is this process."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def keep_to_itself() -> None:
    """From now on, other processes of this user cannot read this one's memory, nor use its open
    files: they can neither trace it nor enter ``/proc/PID/fd``."""
    _libc.prctl(_PR_SET_DUMPABLE, 0)


def follow(
    read: Callable[[], Word], received: Callable[[Word], object], ended: Callable[[], object]
) -> threading.Thread:
    """Call ``received`` with each order of the owner, and ``ended`` when the owner has ended.

    Both are called in the thread that is returned.

    Args:
        read: waits for the next order; returns an empty one (``b""``), or raises EOFError or
            OSError, when the owner's end is closed.
    """

    def listen() -> None:
        try:
            while word := read():
                received(word)
        except (EOFError, OSError):
            pass
        finally:
            ended()

    thread = threading.Thread(target=listen, name="sfm-lifeline", daemon=True)
    thread.start()
    return thread
