"""The thread that carries out a communicator's collectives that do not block their caller."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from sfm_kernel.mpi.engine.operation import Operation

LINGER = 0.2
"""Seconds for which the thread waits for more to do. It is then gone, without being told that its
communicator was freed or its process leaves; a new one is begun in some 0.1 ms."""


class Worker:
    """Does works one after the other, in the order in which they were submitted.

    Args:
        driver: what works are given.
        name: the thread's.
    """

    def __init__(self, driver: Any, name: str) -> None:
        self._driver, self._name = driver, name
        self._queue: SimpleQueue[tuple[Callable[[Any], Any], Operation]] = SimpleQueue()
        self._lock = threading.Lock()
        self._serves = False

    def submit(self, work: Callable[[Any], Any], operation: Operation) -> None:
        """Return at once; the operation is finished when the work was done, or has failed."""
        with self._lock:
            self._queue.put((work, operation))
            self._begin()

    def resume(self) -> None:
        """See to it that what was submitted is done, where Stop came in between."""
        with self._lock:
            if not self._queue.empty():
                self._begin()

    def _begin(self) -> None:
        if not self._serves:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def carry_out(self, work: Callable[[Any], Any], operation: Operation) -> None:
        """Do it now, in this thread."""
        try:
            operation.result = work(self._driver)
        except BaseException as failure:  # noqa: BLE001 - raised by who waits for the operation
            operation.finish(failure)
        else:
            operation.finish()

    def _serve(self) -> None:
        with self._lock:
            if self._serves:  # another thread was begun, too
                return
            self._serves = True
        while True:
            try:
                given = self._queue.get(timeout=LINGER)
            except Empty:
                with self._lock:
                    if self._queue.empty():
                        self._serves = False
                        return
                continue
            self.carry_out(*given)
            del given  # the buffers of a call that is done belong to the program
