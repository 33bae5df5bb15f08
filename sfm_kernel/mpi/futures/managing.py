"""How an executor's tasks are brought to where they run: by a thread of its own, from a queue."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfm_kernel.mpi.futures.pool import MPIPoolExecutor

Task = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
Item = tuple[Future[Any], Task]
Options = dict[str, Any]
Manage = Callable[["Pool", Options], None]


class TaskQueue(deque["Item | None"]):
    """Tasks that nobody has taken yet, in their order; None behind the last one."""

    put = deque.append
    add = deque.appendleft

    def pop(self) -> Item | None:  # type: ignore[override]
        """Take the first. Raises LookupError if there is none."""
        return self.popleft()


class Pool:
    """An executor's queue, and the thread that manages it.

    Args:
        executor: when nobody has it any more, what was submitted is still done, as after
            ``shutdown``.
        manage: what the thread does, given the pool and the executor's options.
    Attributes:
        size: how many workers there are, when ``event`` is set.
        event: set when the workers are ready, or never will be.
        wake: tells the manager that the queue has changed; it may be called from any thread.
    """

    def __init__(self, executor: MPIPoolExecutor, manage: Manage) -> None:
        self.size: int | None = None
        self.event = threading.Event()
        self.queue = queue = TaskQueue()
        self.wake: Callable[[], None] = _nothing
        # No wake: this may come in the middle of anything. Managers look around by themselves.
        self._executor = weakref.ref(executor, lambda _: queue.put(None))
        self.thread = threading.Thread(
            target=self._run, args=(manage, dict(executor._options)), name="sfm-futures"
        )
        _pools.add(self)
        self.thread.start()

    def _run(self, manage: Manage, options: Options) -> None:
        try:
            manage(self, options)
        except BaseException as failure:  # noqa: BLE001 - nobody waits for this thread's result
            self.broken(f"{type(failure).__name__}: {failure}")

    def wait(self) -> None:
        """Return when the workers are ready, or never will be."""
        self.event.wait()

    def push(self, item: Item) -> None:
        """Submit a task."""
        self.queue.put(item)
        self.wake()

    def done(self) -> None:
        """No task comes after those that are in the queue."""
        self.queue.put(None)
        self.wake()

    def join(self) -> None:
        """Return when all tasks are done, and the thread has ended."""
        self.thread.join()

    def setup(self, size: int) -> TaskQueue:
        """The workers are ready."""
        self.size = size
        self.event.set()
        return self.queue

    def cancel(self, handler: Callable[[Future[Any]], None] | None = None) -> None:
        """Cancel the tasks that nobody has taken, or do with them what ``handler`` does."""
        while True:
            try:
                item = self.queue.pop()
            except LookupError:
                return
            if item is None:
                self.queue.put(None)
                return
            (handler or _cancel)(item[0])

    def broken(self, message: str) -> None:
        """The workers are of no use any more: tasks fail with BrokenExecutor, later ones too."""

        def handler(future: Future[Any]) -> None:
            if future.set_running_or_notify_cancel():
                future.set_exception(BrokenExecutor(message))

        executor = self._executor()
        if executor is not None:
            executor._broken = message
        self.event.set()
        if executor is None or executor._shutdown:
            self.cancel(handler)
        else:
            with executor._lock:  # nothing is being submitted
                self.cancel(handler)


def _nothing() -> None:
    pass


def _cancel(future: Future[Any]) -> None:
    future.cancel()
    future.set_running_or_notify_cancel()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def end_all() -> None:
    """Return when all that was submitted to any executor is done, and their threads have ended."""
    pools = list(_pools)
    for pool in pools:
        pool.done()
    for pool in pools:
        pool.join()


# Before Python waits for threads that are no daemons, as these are: as concurrent.futures does.
threading._register_atexit(end_all)  # type: ignore[attr-defined]


def initialize(options: Options) -> bool:
    """Take the executor's initializer from its options and call it; false if it has raised."""
    function = options.pop("initializer", None)
    arguments, named = options.pop("initargs", ()), options.pop("initkwargs", {})
    if function is not None:
        try:
            function(*arguments, **named)
        except BaseException:  # noqa: BLE001 - whatever the user's function raises
            return False
    return True
