"""When an engine is idle: its cell has ended, and nothing is left of it that could go on."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from typing import Any

from sfm_kernel.endpoint.bystanders import CHECK_EVERY, bystanders


class Rest:
    """Tells observers when an engine begins to run, and when it rests.

    Nobody waits in vain for an engine that has callbacks, threads, or tasks that its cells have
    started: these may still send. So it counts as running until they are gone, and observers are
    told what they are.
    """

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._cells = 0
        self._loop: Any = None

    def begin(self) -> None:
        """A cell begins."""
        with self._lock:
            self._cells += 1
            self._endpoint.show_running(True)

    def end(self) -> None:
        """It has ended, on the main thread."""
        with suppress(RuntimeError):  # there is none
            self._loop = asyncio.get_running_loop()
        if not self._rests(self._cells):
            args = (self._cells,)
            threading.Thread(target=self._await, args=args, name="sfm-rest", daemon=True).start()

    def _await(self, cell: int) -> None:
        while not self._rests(cell):
            time.sleep(CHECK_EVERY)

    def _rests(self, cell: int) -> bool:
        """Whether there is nothing more to be awaited after this cell; tells observers if so."""
        with self._lock:
            if cell != self._cells or self._endpoint.closed:
                return True
            main = threading.main_thread().ident or 0
            others = bystanders(main, loop=self._loop, over=True)
            self._endpoint.show_end(others)
            return not others
