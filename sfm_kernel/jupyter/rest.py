"""Decides when an engine is idle: its cell has ended and has left nothing that still runs."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any

from sfm_kernel.endpoint import seen
from sfm_kernel.endpoint.bystanders import CHECK_EVERY, bystanders
from sfm_kernel.errors import SFMError


class Rest:
    """Publishes to observers when an engine begins to run, and when it is idle.

    Callbacks, threads and tasks that an engine's cells have started may still send: a process that
    waits for such an engine is not stuck. So the engine counts as running until they have ended,
    and it publishes what they are.
    """

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._cells = 0
        self._has_failed = False
        self._loop: Any = None

    def begin(self) -> None:
        """Publish that a cell runs."""
        with self._lock:
            self._cells += 1
            if self._has_failed:
                self._endpoint.describe(failed=None)
                self._has_failed = False
            self._endpoint.show_running(True)

    def fail(self, error: BaseException, frames: TracebackType | None) -> None:
        """Publish that an error has ended the cell, and in which of the user's lines."""
        file, function, line = getattr(error, "filename", None), "", getattr(error, "lineno", None)
        while frames is not None:
            code = frames.tb_frame.f_code
            if seen.is_users_file(code.co_filename):
                file, function, line = code.co_filename, code.co_name, frames.tb_lineno
            frames = frames.tb_next
        where = seen.locate(file, function, always=True) if isinstance(file, str) else None
        with self._lock, suppress(SFMError):  # its world may have ended
            self._endpoint.describe(failed=[type(error).__name__, where, line or 0])
            self._has_failed = True

    def end(self) -> None:
        """Publish that the engine is idle, once nothing of its cell runs. In the main thread."""
        with suppress(RuntimeError):  # there is no loop
            self._loop = asyncio.get_running_loop()
        if not self._rests(self._cells):
            wait = partial(self._wait_for_rest, self._cells)
            threading.Thread(target=wait, name="sfm-rest", daemon=True).start()

    def _wait_for_rest(self, cell: int) -> None:
        while not self._rests(cell):
            time.sleep(CHECK_EVERY)

    def _rests(self, cell: int) -> bool:
        """Whether nothing of this cell still runs; publishes what does."""
        with self._lock:
            if cell != self._cells or self._endpoint.closed:
                return True
            main = threading.main_thread().ident or 0
            others = bystanders(main, loop=self._loop, over=True)
            self._endpoint.show_end(others)
            return not others
