"""What one thread does alone, and does to its end."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

_MAIN = threading.main_thread().ident
"""Only the main thread runs handlers of signals."""


class Section:
    """``with section:`` only one thread at a time, which may enter again, and which Stop waits for.

    A KeyboardInterrupt between the moment when a message is taken and the one when its sender is
    told would leave that waiting for ever. So SIGINT is put off, and handled at the end of the
    outermost ``with``. Nothing inside may wait for long.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0  # of the thread that has the lock
        self._handler = self._put_off
        self._usual: Any = None
        self._struck: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> None:
        if threading.get_ident() == _MAIN:
            usual = signal.getsignal(signal.SIGINT)
            if callable(usual) and usual is not self._handler:
                self._usual, self._struck = usual, None
                signal.signal(signal.SIGINT, self._handler)
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        outermost = self._depth == 0
        self._lock.release()
        if (
            outermost
            and threading.get_ident() == _MAIN
            and signal.getsignal(signal.SIGINT) is self._handler
        ):
            signal.signal(signal.SIGINT, self._usual)
            struck, self._struck = self._struck, None
            if struck is not None:
                self._usual(*struck)

    def _put_off(self, number: int, frame: FrameType | None) -> None:
        self._struck = (number, frame)
