"""The executors."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from concurrent.futures import Future as AnyFuture
from types import TracebackType
from typing import Any, ClassVar, Self

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.futures import _core, main_program, mapping, threads
from sfm_kernel.mpi.futures.crew import Crew, Manager
from sfm_kernel.mpi.futures.jobs import manage_ranks
from sfm_kernel.mpi.futures.managing import Options, Pool
from sfm_kernel.mpi.futures.spawn import spawned
from sfm_kernel.mpi.futures.worker import CHANNEL
from sfm_kernel.mpi.launch import standin


def _manage_spawned(pool: Pool, options: Options) -> None:
    """Start processes, and let them do a pool's tasks."""
    _check_use_pkl5(options)
    size = options.pop("max_workers", None) or _default_size()
    flags = options.get("python_args")
    place = main_program.where(options)
    options |= {"main program": place, "sys.path": sys.path, "standin": standin.installed()}
    with spawned(size, options.get("python_exe"), () if flags is None else flags) as sfm:
        crew = Crew(sfm, CHANNEL, range(size), by_value=not place)
        Manager(pool, crew).manage(options)
        crew.stop()


def _default_size() -> int:
    """How many workers an executor has that was not told."""
    told = os.environ.get("MPI4PY_FUTURES_MAX_WORKERS")
    if told is not None:
        return int(told)
    universe = MPI.COMM_WORLD.Get_attr(MPI.UNIVERSE_SIZE)
    return 1 if universe is None else max(1, universe - MPI.COMM_WORLD.Get_size())


def _check_use_pkl5(options: Options) -> None:
    told = os.environ.get("MPI4PY_FUTURES_USE_PKL5")
    known = {"false", "no", "off", "n", "0", "true", "yes", "on", "y", "1"}
    if options.get("use_pkl5") is None and told is not None and told.lower() not in known:
        text = f"MPI4PY_FUTURES_USE_PKL5={told!r} is neither true nor false, and changes nothing"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _processes(executor: MPIPoolExecutor) -> Pool:
    main_program.check_not_importing()
    return Pool(executor, _manage_spawned)


class MPIPoolExecutor(Executor):
    """Does calls in worker processes, and gives a ``Future`` for each.

    Under ``python -m mpi4py.futures`` the workers are the other ranks of the job, which all
    executors share. Otherwise they are started on this machine, when the first call is submitted
    or at ``bootup``; they end at ``shutdown``, or when nobody has the executor any more. Functions
    of the main program are found by their name, since workers import it (below
    ``if __name__ == "__main__":`` stands what they must not do); functions of a notebook, and
    lambdas, are sent by value.

    Args:
        max_workers: how many to start. None: what the environment variable
            ``MPI4PY_FUTURES_MAX_WORKERS`` says, or as many as the job has room for, at least one.
        initializer, initargs: a function, and its arguments, that each worker calls first.
    Keyword Args:
        python_exe, python_args: the interpreter for workers, and a list of options for it.
        main: False: workers do not import the main program.
        globals: global variables that it has there.
        path, wdir, env: in workers, folders to append to ``sys.path``, the working directory, and
            environment variables.
            None for any of these is as good as leaving it away.
        mpi_info, use_pkl5, backoff: change nothing. Arrays always travel as their memory, and
            nobody polls.
    Raises:
        ValueError, TypeError: ``max_workers`` or ``initializer`` is of no use.

    When a worker dies, or its initializer raises, all calls that are not done fail with
    ``BrokenExecutor``, later ones too.
    """

    Future: ClassVar[type[AnyFuture[Any]]] = AnyFuture

    def __init__(
        self,
        max_workers: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        if max_workers is not None:
            max_workers = int(max_workers)
            if max_workers <= 0:
                raise ValueError(f"max_workers is 1 or more, not {max_workers}")
            kwargs["max_workers"] = max_workers
        if initializer is not None:
            if not callable(initializer):
                raise TypeError(f"initializer is a function, not {initializer!r}")
            kwargs |= {"initializer": initializer, "initargs": tuple(initargs)}
        self._options: Options = kwargs
        self._shutdown = False
        self._broken: str | None = None
        self._lock = threading.RLock()
        self._pool: Pool | None = None

    def _bootstrap(self) -> Pool:
        if self._pool is None:
            self._pool = self._make_pool()
        return self._pool

    def _make_pool(self) -> Pool:
        if _core.SharedPool is not None:
            return _core.SharedPool(self)
        if "service" in self._options:
            raise NotImplementedError(
                "service=...: a server to which programs connect is not offered. Leave it away, "
                "and workers are started on this machine; or run the program by "
                "`python -m mpi4py.futures`, on many ranks"
            )
        return _processes(self)

    @property
    def num_workers(self) -> int:
        """How many workers there are; 0 after ``shutdown``. Blocks until they are ready."""
        with self._lock:
            if self._broken or self._shutdown:
                return 0
            pool = self._bootstrap()
        pool.wait()
        return 0 if self._broken else pool.size or 0

    @property
    def _max_workers(self) -> int:
        return self.num_workers

    def bootup(self, wait: bool = True) -> Self:
        """Start the workers now. Blocks until they are ready, with ``wait``.

        Raises:
            RuntimeError: the executor was shut down.
        """
        with self._lock:
            if self._shutdown:
                raise RuntimeError("the executor was shut down: make another one")
            pool = self._bootstrap()
        if wait:
            pool.wait()
        return self

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> AnyFuture[Any]:
        """Let a worker call ``fn(*args, **kwargs)``; returns at once, with a future for the result.

        Raises:
            BrokenExecutor: the workers are of no use any more.
            RuntimeError: the executor was shut down.
        """
        with self._lock:
            if self._broken:
                raise BrokenExecutor(self._broken)
            if self._shutdown:
                raise RuntimeError("the executor was shut down: make another one")
            pool = self._bootstrap()
            future = self.Future()
            pool.push((future, (fn, args, kwargs)))
            return future

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[Any]:
        """As ``starmap``, with the arguments of each call taken from the iterables."""
        tuples = zip(*iterables, strict=False)
        return self.starmap(fn, tuples, timeout, chunksize, buffersize, unordered)

    def starmap(
        self,
        fn: Callable[..., Any],
        iterable: Iterable[Iterable[Any]],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[Any]:
        """Submit ``fn(*args)`` for each ``args`` of an iterable, and return an iterator of results.

        Args:
            timeout: seconds, from now, in which all results must have come.
            chunksize: how many calls make up one task.
            buffersize: how many tasks are submitted ahead of the results that were taken; None: all
                are submitted before this returns.
            unordered: results come as soon as they are there.
        Raises:
            ValueError, TypeError: these do not fit.
            TimeoutError, or what a call has raised: from the iterator; other calls are then
                cancelled, as far as they have not begun.
        """
        return mapping.starmap(self, fn, iterable, timeout, chunksize, buffersize, unordered)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No call can be submitted any more. Harmless when repeated.

        Args:
            wait: return when all calls are done and the workers have ended.
            cancel_futures: cancel those that have not begun.
        """
        with self._lock:
            pool = self._pool
            if not self._shutdown:
                self._shutdown = True
                if pool is not None:
                    pool.done()
            if pool is None:
                return
            if cancel_futures:
                pool.cancel()
            if wait:
                self._pool = None
        if wait:
            pool.join()


class ThreadPoolExecutor(MPIPoolExecutor):
    """Does calls in threads of this process; otherwise an ``MPIPoolExecutor``."""

    def _make_pool(self) -> Pool:
        return Pool(self, threads.manage)


class ProcessPoolExecutor(MPIPoolExecutor):
    """Does calls in processes that are always started for it; an ``MPIPoolExecutor``."""

    def _make_pool(self) -> Pool:
        return _processes(self)


class MPICommExecutor:
    """The ranks of a communicator as one that has calls to do, and workers that do them.

    A context manager, entered by all ranks together. On ``root`` its value is an
    ``MPIPoolExecutor``. On the others the calls are done in entering it; when the executor was
    shut down its value there is None, and errors that this causes in the body are dropped. Alone
    in the communicator, ``root`` does the calls itself, in a thread.

    Args:
        comm: an intracommunicator; COMM_WORLD if None.
        root: the rank that has calls.
        kwargs: options of the executor.
    Raises:
        ValueError: ``comm`` is an intercommunicator, or has no such rank.
    Example::

        with MPICommExecutor(MPI.COMM_WORLD) as executor:
            if executor is not None:
                print(list(executor.map(abs, [-1, 2])))
    """

    def __init__(self, comm: Any = None, root: int = 0, **kwargs: Any) -> None:
        if comm is None:
            comm = MPI.COMM_WORLD
        if comm.Is_inter():
            raise ValueError("comm has two groups: MPICommExecutor needs an intracommunicator")
        if not 0 <= root < comm.Get_size():
            raise ValueError(f"root is a rank of comm, 0 to {comm.Get_size() - 1}, not {root}")
        if _core.SharedPool is not None:
            comm = MPI.COMM_WORLD
            root = comm.Get_rank()
        self._comm, self._root, self._options = comm, root, kwargs
        self._executor: MPIPoolExecutor | None = None

    def __enter__(self) -> MPIPoolExecutor | None:
        if self._executor is not None:
            raise RuntimeError("this MPICommExecutor was entered already: leave it first")
        if self._comm.Get_rank() == self._root:
            self._executor = MPIPoolExecutor(**self._options)
            if _core.SharedPool is not None:
                self._executor._pool = _core.SharedPool(self._executor)
                return self._executor
        manage_ranks(self._executor, self._comm, self._root)
        return self._executor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        executor, self._executor = self._executor, None
        if executor is None:
            return True
        executor.shutdown(wait=True)
        return False
