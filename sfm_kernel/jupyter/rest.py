"""When an engine is idle: its cell has ended, and nothing is left of it that could go on."""

from __future__ import annotations

import threading
import time
from typing import Any

from sfm_kernel.endpoint.seen import bystanders

_LOOK_EVERY = 0.25
"""Seconds between two looks at whether a thread that a cell has left has ended."""


class Rest:
    """Tells observers when an engine begins to run, and when it rests.

    Nobody waits in vain for an engine that has callbacks, or threads that its cells have started:
    these may still send. So it counts as running until they are gone.
    """

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._cells = 0

    def begin(self) -> None:
        """A cell begins."""
        with self._lock:
            self._cells += 1
            self._endpoint.show_running(True)

    def end(self) -> None:
        """It has ended, on the main thread."""
        if not self._rests(self._cells):
            args = (self._cells,)
            threading.Thread(target=self._await, args=args, name="sfm-rest", daemon=True).start()

    def _await(self, cell: int) -> None:
        while not self._rests(cell):
            time.sleep(_LOOK_EVERY)

    def _rests(self, cell: int) -> bool:
        """Whether there is nothing more to be awaited after this cell; tells observers if so."""
        with self._lock:
            if cell != self._cells or self._endpoint.closed:
                return True
            if bystanders(threading.main_thread()):
                return False
            self._endpoint.show_running(False)
            return True
