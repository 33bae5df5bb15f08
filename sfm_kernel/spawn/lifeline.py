"""How a process learns that its owner has ended, however that happened.

Only the owner holds the other end of a pipe or a socket, which the kernel closes with it; this also
carries its orders (``follow``). Or the kernel sends a signal, which reaches a process that holds
the GIL, too; only a parent can be such an owner (``die_with``).
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

_libc = ctypes.CDLL(None)  # here, once: not in each fork
_PR_SET_PDEATHSIG = 1

Word = TypeVar("Word")


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Have the kernel send this process a signal when its parent dies.

    Args:
        parent: the parent's process id, noted before this process began. If it has died meanwhile,
            this process ends at once.
    """
    _libc.prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the call
        os._exit(1)


def follow(
    read: Callable[[], Word], heard: Callable[[Word], object], ended: Callable[[], object]
) -> threading.Thread:
    """Pass each order of the owner to ``heard``; call ``ended`` when the owner has gone.

    Both are called in the thread that is returned.

    Args:
        read: blocks for the next order; gives nothing (``b""``), or raises EOFError or OSError,
            once the owner has closed its end.
    """

    def listen() -> None:
        try:
            while word := read():
                heard(word)
        except (EOFError, OSError):
            pass
        finally:
            ended()

    thread = threading.Thread(target=listen, name="sfm-lifeline", daemon=True)
    thread.start()
    return thread
