"""Workers that are threads of this process."""

from __future__ import annotations

import threading

from sfm_kernel.mpi.futures.managing import Item, Options, Pool, initialize

LOOK_SECONDS = 0.1
"""How often threads that wait look whether anybody has the executor still."""


def manage(pool: Pool, options: Options) -> None:
    """Do a pool's tasks in ``max_workers`` threads: in this one, and in others when there is work.

    The initializer is called once.
    """
    if initialize(options):
        _Team(pool, options.pop("max_workers", 1)).serve()
    else:
        pool.broken("the initializer failed")


class _Team:
    """Threads that take tasks from one queue."""

    def __init__(self, pool: Pool, size: int) -> None:
        self._changed = threading.Condition()
        pool.wake = self._wake
        self._queue, self._size = pool.setup(size), size
        self._others: list[threading.Thread] = []

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def serve(self) -> None:
        """Return when the queue has come to its end, and all of its tasks are done."""
        self._work()
        for thread in self._others:
            thread.join()
        self._queue.pop()

    def _work(self) -> None:
        while (item := self._take()) is not None:
            _do(item)
            del item

    def _take(self) -> Item | None:
        with self._changed:
            while not self._queue:
                self._changed.wait(LOOK_SECONDS)
            item = self._queue.pop()
            if item is None:
                self._queue.put(None)  # for the others
                self._changed.notify_all()
            elif self._queue and len(self._others) < self._size - 1:
                self._others.append(threading.Thread(target=self._work, name="sfm-futures"))
                self._others[-1].start()
            return item


def _do(item: Item) -> None:
    future, (function, arguments, named) = item
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(function(*arguments, **named))
        except BaseException as error:  # noqa: BLE001 - whatever the task raises
            future.set_exception(error)
