"""Counters, locks and conditions that the processes of a communicator share.

All but ``Sequential`` are made, and freed, by all processes together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self, TypeVar

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.util.kept import Lock, Number, Sleepers
from sfm_kernel.mpi.util.shared import Shared

__all__ = ["Condition", "Counter", "Mutex", "Semaphore", "Sequential"]

T = TypeVar("T")


class Sequential:
    """A part of a program that processes go through one after the other, by their ranks.

    A context manager. The next process begins when the one before it has ended its part.

    Args:
        comm: an intracommunicator.
        tag: of the messages with which processes tell each other.
    """

    def __init__(self, comm: Any, tag: int = 0) -> None:
        self.comm, self.tag = comm, int(tag)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def begin(self) -> None:
        """Wait until it is this process's turn."""
        rank = self.comm.Get_rank()
        if rank > 0:
            self.comm.Recv((bytearray(), 0, MPI.BYTE), rank - 1, self.tag)

    def end(self) -> None:
        """Let the next process begin."""
        rank = self.comm.Get_rank()
        if rank < self.comm.Get_size() - 1:
            self.comm.Send((bytearray(), 0, MPI.BYTE), rank + 1, self.tag)


class Counter:
    """A number that counts on; an iterator that never ends.

    Args:
        start, step: its first value, and what is added each time.
        typecode: what number it is; as in the module ``array``. Integers begin again at their end.
        comm: an intracommunicator.
        info: changes nothing.
        root: the rank of the process that keeps the number.
    """

    def __init__(
        self,
        start: int = 0,
        step: int = 1,
        *,
        typecode: str = "i",
        comm: Any = MPI.COMM_SELF,
        info: Any = MPI.INFO_NULL,
        root: int = 0,
    ) -> None:
        self._start, self._step = start, step
        self._shared: Shared | None = Shared(comm, root, Number(start, typecode))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, incr: Any = None) -> Any:
        """Add ``incr``, or the step, and return what the number was before.

        Raises:
            RuntimeError: the counter was freed.
        """
        if self._shared is None:
            raise RuntimeError("the counter was freed")
        return self._shared.ask("add", self._step if incr is None else incr)

    def free(self) -> None:
        """Free the counter; harmless when repeated. Blocks until all processes do."""
        shared, self._shared = self._shared, None
        if shared is not None:
            shared.free()


class Mutex:
    """A lock that one process holds at a time; who waits gets it in turn. A context manager.

    Args:
        recursive: the process that holds it may acquire it again, and releases it as often.
        comm: an intracommunicator; its rank 0 keeps the lock.
        info: changes nothing.
    Its calls raise RuntimeError when it was freed. ``acquire`` raises MPI.Exception
    (ERR_PROC_FAILED) when the process that holds it has died.
    """

    def __init__(
        self,
        *,
        recursive: bool = False,
        comm: Any = MPI.COMM_SELF,
        info: Any = MPI.INFO_NULL,
    ) -> None:
        self._recursive, self._comm, self._held = bool(recursive), comm, 0
        self._shared: Shared | None = Shared(comm, 0, Lock())

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Hold it; whether it is held now: without ``blocking``, another process may have it.

        Raises:
            RuntimeError: this process holds it already, and it is not recursive.
        """
        shared = self._alive()
        if self._held and not self._recursive:
            raise RuntimeError("this process holds the mutex already, and it is not recursive")
        if self._held or shared.ask("acquire", bool(blocking)):
            self._held += 1
            return True
        return False

    def release(self) -> None:
        """Give it to the next.

        Raises:
            RuntimeError: this process does not hold it.
        """
        shared = self._alive()
        if not self._held:
            raise RuntimeError("this process does not hold the mutex")
        self._held -= 1
        if not self._held:
            shared.ask("release")

    def locked(self) -> bool:
        """Whether this process holds it."""
        self._alive()
        return self._held > 0

    def count(self) -> int:
        """How often this process holds it."""
        self._alive()
        return self._held

    def free(self) -> None:
        """Release and free it; harmless when repeated. Blocks until all processes do."""
        if self._shared is not None:
            self._let_go()
            shared, self._shared = self._shared, None
            shared.free()

    def _alive(self) -> Shared:
        if self._shared is None:
            raise RuntimeError("the mutex was freed")
        return self._shared

    def _let_go(self) -> int:
        """Release it altogether; how often it was held."""
        held, self._held = self._held, 0
        if held:
            self._alive().ask("release")
        return held

    def _hold_again(self, held: int) -> None:
        self._alive().ask("acquire", True)
        self._held = held


class Condition:
    """Lets processes that hold a mutex wait until another one notifies them. A context manager.

    Args:
        mutex: the mutex; a new one if None.
        recursive: whether the new one is.
        comm: an intracommunicator; that of the mutex, if there is one.
        info: changes nothing.
    Its calls raise RuntimeError when it was freed.
    """

    def __init__(
        self,
        mutex: Mutex | None = None,
        *,
        recursive: bool = True,
        comm: Any = MPI.COMM_SELF,
        info: Any = MPI.INFO_NULL,
    ) -> None:
        self._owns_mutex = mutex is None
        self._mutex = Mutex(recursive=recursive, comm=comm) if mutex is None else mutex
        self._shared: Shared | None = Shared(self._mutex._comm, 0, Sleepers())

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """``Mutex.acquire``."""
        self._alive()
        return self._mutex.acquire(blocking)

    def release(self) -> None:
        """``Mutex.release``."""
        self._alive()
        self._mutex.release()

    def locked(self) -> bool:
        """Whether this process holds the mutex."""
        return self._mutex.locked()

    def wait(self) -> Literal[True]:
        """Release the mutex, wait until another process notifies this one, and acquire it again.

        Raises:
            RuntimeError: this process does not hold the mutex.
        """
        shared = self._holding("wait")
        number = shared.begin("sleep")
        shared.wait_for(number)  # from here on it can be notified
        held = self._mutex._let_go()
        try:
            shared.wait_for(number)
        finally:
            self._mutex._hold_again(held)
        return True

    def wait_for(self, predicate: Callable[[], T]) -> T:
        """``wait`` until the predicate gives something true; returns that."""
        while not (result := predicate()):
            self.wait()
        return result

    def notify(self, n: int = 1) -> int:
        """Wake at most ``n`` of the processes that wait, those that began first; how many.

        Raises:
            RuntimeError: this process does not hold the mutex.
        """
        woken: int = self._holding("notify").ask("wake", n)
        return woken

    def notify_all(self) -> int:
        """Wake all processes that wait; how many."""
        return self.notify((1 << 31) - 1)

    def free(self) -> None:
        """Release and free it; harmless when repeated. Blocks until all processes do."""
        shared, self._shared = self._shared, None
        if shared is None:
            return
        if self._owns_mutex:
            self._mutex.free()
        elif self._mutex._shared is not None:
            self._mutex._let_go()
        shared.free()

    def _alive(self) -> Shared:
        if self._shared is None:
            raise RuntimeError("the condition was freed")
        return self._shared

    def _holding(self, what: str) -> Shared:
        shared = self._alive()
        if not self.locked():
            raise RuntimeError(f"this process does not hold the mutex: acquire it, then {what}")
        return shared


class Semaphore:
    """A number of permits, which processes take and give back. A context manager.

    Args:
        value: how many there are.
        bounded: no more can be given back than were taken.
        comm: an intracommunicator.
        info: changes nothing.
    Its calls raise RuntimeError when it was freed.
    """

    def __init__(
        self,
        value: int = 1,
        *,
        bounded: bool = True,
        comm: Any = MPI.COMM_SELF,
        info: Any = MPI.INFO_NULL,
    ) -> None:
        if value < 0:
            raise ValueError(f"a semaphore begins with 0 permits or more, not {value}")
        self._bounded = bool(bounded)
        self._counter = Counter(value, comm=comm)
        self._condition = Condition(recursive=False, comm=comm)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, blocking: bool = True) -> bool:
        """Take a permit; whether there was one: without ``blocking``, all may be taken."""
        with self._condition:
            while self._counter.next(0) == 0:
                if not blocking:
                    return False
                self._condition.wait()
            self._counter.next(-1)
            return True

    def release(self, n: int = 1) -> None:
        """Give ``n`` permits back.

        Raises:
            ValueError: ``n`` is not 1 or more; or there would be more than at the beginning.
        """
        if n < 1:
            raise ValueError(f"1 permit or more is given back, not {n}")
        with self._condition:
            if self._bounded and self._counter.next(0) + n > self._counter._start:
                raise ValueError("more permits are given back than were taken")
            self._counter.next(n)
            self._condition.notify(n)

    def free(self) -> None:
        """Free it; harmless when repeated. Blocks until all processes do."""
        self._counter.free()
        self._condition.free()
