"""The thread that carries out a communicator's collectives that do not block their caller."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.engine.helper import Helper
from sfm_kernel.mpi.engine.operation import Operation

if TYPE_CHECKING:
    from sfm_kernel.mpi.comm.driver import Driver

LINGER = 0.2
"""Seconds for which the thread waits for more to do. It is then gone, without being told that its
communicator was freed or its process leaves; a new one is begun in some 0.1 ms."""

Work = Callable[[Any], Any]


class Worker(Helper):
    """Does works one after the other, in the order in which they were submitted.

    Args:
        driver: what works are given.
        name: the thread's.
    """

    _is_apart = True

    def __init__(self, driver: Driver, name: str) -> None:
        super().__init__(driver.state.process.sfm)
        self._driver, self._name = driver, name
        self._queue: SimpleQueue[tuple[Work, Operation, int]] = SimpleQueue()
        self._lock = threading.Lock()
        self._serves = False
        self._open: deque[Operation] = deque()
        self._given_up: dict[Operation, BaseException] = {}
        driver.on_wait = self._check

    def submit(self, work: Work, operation: Operation) -> None:
        """Return at once; the operation is finished when the work was done, or has failed."""
        operation.helper = self
        with self._lock:
            self._open.append(operation)
            self._queue.put((work, operation, self._inbox.place()))
            if not self._serves:
                self.thread(self._serve, self._name).start()

    def text(self) -> str:
        return self._open[0].text if self._open else ""

    def give_up(self, failure: BaseException) -> None:
        """What was submitted, and is not done, ends with this failure: nobody can end it."""
        self._given_up |= dict.fromkeys(list(self._open), failure)

    def _check(self) -> None:
        """Called while a work waits."""
        if self._open and (failure := self._given_up.get(self._open[0])):
            raise failure

    def carry_out(self, work: Work, operation: Operation) -> None:
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
            self._carry_out_next(*given)
            del given  # the buffers of a call that is done belong to the program

    def _carry_out_next(self, work: Work, operation: Operation, place: int) -> None:
        try:
            with self.helping(place):
                if failure := self._given_up.get(operation):
                    operation.finish(failure)
                else:
                    self.carry_out(work, operation)
        finally:
            self._open.popleft()
            self._given_up.pop(operation, None)
