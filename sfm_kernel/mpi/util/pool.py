"""The interface of ``multiprocessing.pool``, on executors."""

from __future__ import annotations

import operator
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, ClassVar, Self

from sfm_kernel.mpi.futures import MPIPoolExecutor, ThreadPoolExecutor

__all__ = ["ApplyResult", "AsyncResult", "MapResult", "Pool", "ThreadPool"]

Function = Callable[..., Any]
OnResult = Callable[[Any], object] | None
OnError = Callable[[BaseException], object] | None

MAX_COLLECTORS = 4
"""Threads that wait for the results of ``map_async`` and ``starmap_async``."""


class Pool:
    """Worker processes. A context manager, which closes it.

    Args:
        processes: how many; None: see ``MPIPoolExecutor``.
        initializer, initargs: a function, and its arguments, that each worker calls first.
        kwargs: options of the executor. ``maxtasksperchild`` and ``context`` are not supported;
            other values of them than None give a UserWarning.
    Raises:
        ValueError, TypeError: ``processes`` or ``initializer`` is of no use.
    """

    Executor: ClassVar[Callable[..., Any]] = MPIPoolExecutor

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        if processes is not None and processes < 1:
            raise ValueError(f"a pool has 1 process or more, not {processes}")
        if initializer is not None and not callable(initializer):
            raise TypeError(f"initializer is a function, not {initializer!r}")
        for name in ("maxtasksperchild", "context"):
            if kwargs.pop(name, None) is not None:
                warnings.warn(f"{name} is not supported, and changes nothing", stacklevel=2)
        self.executor = self.Executor(
            processes, initializer=initializer, initargs=initargs, **kwargs
        )
        self._collectors: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def apply(self, func: Function, args: Iterable[Any] = (), kwds: Mapping[str, Any] = {}) -> Any:
        """``func(*args, **kwds)``, called by a worker."""
        return self.executor.submit(func, *args, **kwds).result()

    def apply_async(
        self,
        func: Function,
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] = {},
        callback: OnResult = None,
        error_callback: OnError = None,
    ) -> ApplyResult:
        """As ``apply``, without waiting. One of the callbacks is called when it is done."""
        future = self.executor.submit(func, *args, **kwds)
        return ApplyResult(future, callback, error_callback)

    def map(
        self, func: Function, iterable: Iterable[Any], chunksize: int | None = None
    ) -> list[Any]:
        """``[func(one) for one in iterable]``, called by the workers.

        Args:
            chunksize: how many calls make up one task; None: such that each worker gets about four.
        """
        iterable, chunksize = self._chunks(iterable, chunksize)
        return list(self.imap(func, iterable, chunksize))

    def map_async(
        self,
        func: Function,
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: OnResult = None,
        error_callback: OnError = None,
    ) -> MapResult:
        """As ``map``, without waiting. One of the callbacks is called when all is done."""
        iterable, chunksize = self._chunks(iterable, chunksize)
        results = self.imap(func, iterable, chunksize)
        return MapResult(self._collect(results), callback, error_callback)

    def imap(self, func: Function, iterable: Iterable[Any], chunksize: int = 1) -> Iterator[Any]:
        """As ``map``, but an iterator."""
        results: Iterator[Any] = self.executor.map(func, iterable, chunksize=chunksize)
        return results

    def imap_unordered(
        self, func: Function, iterable: Iterable[Any], chunksize: int = 1
    ) -> Iterator[Any]:
        """As ``imap``, with results as soon as they are there."""
        results: Iterator[Any] = self.executor.map(
            func, iterable, chunksize=chunksize, unordered=True
        )
        return results

    def starmap(
        self,
        func: Function,
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
    ) -> list[Any]:
        """``[func(*args) for args in iterable]``; as ``map``."""
        iterable, chunksize = self._chunks(iterable, chunksize)
        return list(self.istarmap(func, iterable, chunksize))

    def starmap_async(
        self,
        func: Function,
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: OnResult = None,
        error_callback: OnError = None,
    ) -> MapResult:
        """As ``starmap``, without waiting. One of the callbacks is called when all is done."""
        iterable, chunksize = self._chunks(iterable, chunksize)
        results = self.istarmap(func, iterable, chunksize)
        return MapResult(self._collect(results), callback, error_callback)

    def istarmap(
        self, func: Function, iterable: Iterable[Iterable[Any]], chunksize: int = 1
    ) -> Iterator[Any]:
        """As ``starmap``, but an iterator."""
        results: Iterator[Any] = self.executor.starmap(func, iterable, chunksize=chunksize)
        return results

    def istarmap_unordered(
        self, func: Function, iterable: Iterable[Iterable[Any]], chunksize: int = 1
    ) -> Iterator[Any]:
        """As ``istarmap``, with results as soon as they are there."""
        results: Iterator[Any] = self.executor.starmap(
            func, iterable, chunksize=chunksize, unordered=True
        )
        return results

    def close(self) -> None:
        """No call can be made any more; those that were are done."""
        self.executor.shutdown(wait=False)

    def terminate(self) -> None:
        """As ``close``, and calls that have not begun are cancelled."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait until the workers have ended, after ``close`` or ``terminate``."""
        self.executor.shutdown(wait=True)
        with self._lock:
            collectors, self._collectors = self._collectors, None
        if collectors is not None:
            collectors.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chunks(self, iterable: Iterable[Any], chunksize: int | None) -> tuple[Iterable[Any], int]:
        if chunksize is not None:
            return iterable, chunksize
        workers = getattr(self.executor, "_max_workers", 0)
        if workers <= 0:
            return iterable, 1
        if not operator.length_hint(iterable):
            iterable = list(iterable)
        return iterable, max(1, -(-operator.length_hint(iterable) // (workers * 4)))

    def _collect(self, results: Iterator[Any]) -> Future[list[Any]]:
        with self._lock:
            if self._collectors is None:
                self._collectors = ThreadPoolExecutor(min(MAX_COLLECTORS, os.cpu_count() or 1))
            return self._collectors.submit(list, results)


class ThreadPool(Pool):
    """Threads of this process; otherwise a ``Pool``."""

    Executor = ThreadPoolExecutor


class AsyncResult:
    """The result of a call that may not be done yet."""

    def __init__(
        self, future: Future[Any], callback: OnResult = None, error_callback: OnError = None
    ) -> None:
        self.future = future
        self._callback, self._error_callback = callback, error_callback
        self._done = threading.Event()
        future.add_done_callback(self._finish)

    def _finish(self, future: Future[Any]) -> None:
        try:
            error = TimeoutError() if future.cancelled() else future.exception()
            if error is None and self._callback is not None:
                self._callback(future.result())
            if error is not None and self._error_callback is not None:
                self._error_callback(error)
        finally:
            self._done.set()

    def get(self, timeout: float | None = None) -> Any:
        """Wait for the result, and return it.

        Raises:
            TimeoutError: it did not come within ``timeout`` seconds, or was cancelled.
            What the call has raised.
        """
        self.wait(timeout)
        if not self.ready():
            raise TimeoutError(f"there was no result within {timeout} s")
        try:
            return self.future.result()
        except CancelledError:
            raise TimeoutError("the call was cancelled: there will be no result") from None

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is done, at most ``timeout`` seconds."""
        self._done.wait(timeout)

    def ready(self) -> bool:
        """Whether it is done."""
        return self._done.is_set()

    def successful(self) -> bool:
        """Whether it was done without an error.

        Raises:
            ValueError: it is not done.
        """
        if not self.ready():
            raise ValueError("the call is not done: wait() for it")
        return not self.future.cancelled() and self.future.exception() is None


class ApplyResult(AsyncResult):
    """What ``apply_async`` returns."""


class MapResult(AsyncResult):
    """What ``map_async`` and ``starmap_async`` return."""
