"""A task farm like Trickle, the layer of River: it is built on ``send`` and ``recv`` alone.

    >>> from sfm_kernel import farm
    >>> def program(sfm):
    ...     if sfm.rank:
    ...         return farm.serve(sfm)  # the engines of a notebook need no such call
    ...     with farm.connect(sfm) as workers:
    ...         return sum(workers.map(abs, range(-10, 10)))
    >>> sfm_kernel.run(program, n=3)[0]
    100

This module decides which worker gets which task; ``serving.caller`` sends the calls, collects their
results, and repeats the calls of a worker that has died.

Source: SFM paper, section 6; Benson and Fedosov, Python-based distributed programming with Trickle,
2007. Polychronopoulos and Kuck, Guided self-scheduling, 1987; Blumofe and Leiserson, Scheduling
multithreaded computations by work stealing, 1999.
"""

from __future__ import annotations

import atexit
import itertools
import math
import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent import futures
from contextlib import suppress
from typing import Any

from sfm_kernel import serving
from sfm_kernel.directory import Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.endpoint.bystanders import FUTURES
from sfm_kernel.endpoint.endpoint import open_endpoints
from sfm_kernel.errors import SFMError, TaskFailed
from sfm_kernel.message import Message
from sfm_kernel.serving import serve

__all__ = ["Executor", "Farm", "Tasks", "connect", "serve"]

SCHEDULES = ("dynamic", "guided", "static", "stealing")
BATCH_SECONDS = 0.05
"""Seconds of work in one batch of short tasks. A worker holds a second batch in reserve."""
_Submitted = tuple[futures.Future[Any], serving.Call]


def connect(sfm: Endpoint | None = None, names: Iterable[Name] | None = None) -> Farm:
    """Attach workers, and return a farm that gives them tasks.

    Args:
        sfm: this process's endpoint; needed only if the process has several.
        names: names or ranks of the workers; by default every other process that has a rank. In a
            notebook these are the engines, and one that dies in this moment is left out.
    Raises:
        WorkersLost: there is no worker.
        UnknownName: a name is not in the world.
        PeerLost: a named process has died.
    """
    return Farm(sfm or serving.only_endpoint(), names, _Worker, "farm")


class _Worker(serving.Callee):
    """Makes calls. A worker without calls asks the others, one by one, for half of theirs."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self._peers: list[Name] = []
        self._victims: list[Name] = []  # workers that were not asked yet
        self._asks = False  # whether a victim has yet to answer

    def take(self, message: Message) -> None:
        if "steal" in message:
            self._give(message.src)
            return
        super().take(message)
        if "peers" in message:
            self._asks = False
            self._peers = [name for name in message.peers if name != self.sfm.name]
            if message.parts:
                self._victims = random.sample(self._peers, len(self._peers))

    def work(self) -> bool:
        while not self.queue and self._victims and not self._asks:
            with suppress(SFMError):  # the victim has died
                self.send(self._victims.pop(), steal=True)
                self._asks = True
        return super().work()

    def _give(self, thief: Name) -> None:
        stolen = self.cut(sum(map(len, self.queue)) // 2)
        self.answer(parts=stolen["parts"], thief=thief)  # the owner knows before the thief has them
        with suppress(SFMError):  # the thief has died: the owner gives its calls to another worker
            self.send(thief, peers=[*self._peers, self.sfm.name], **stolen)


class Tasks(serving.Calls):
    """The results of ``Farm.map``: an iterator that computes as it is read.

    Iterating over it yields each result, in the order of the items or, with ``unordered=True``, in
    the order in which they arrive. A failed task raises TaskFailed at its turn; iterating again
    continues behind it. ``len`` is the number of tasks.

    - ``finish()`` waits for all tasks and returns the results of those that did not fail, by the
      number of the task.
    - ``cancel()`` drops the tasks that have not begun, and on engines interrupts those that run.
    - ``results`` and ``failures`` hold what has arrived so far, by the number of the task.
    """

    def __init__(
        self, farm: Farm, *calls: Any, schedule: str = "dynamic", chunk: int = 0, **options: Any
    ) -> None:
        self._farm, self._schedule, self._chunk = farm, schedule, chunk
        self._task_seconds = math.inf
        self._served, self.shares = set[Name](), schedule == "stealing"
        super().__init__(farm, *calls, **options)

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        remaining, workers = len(self.pending), self._farm.workers
        if self._schedule in ("static", "stealing"):
            others = len(set(workers) - self._served)
            waits = others and name in self._served
            n = 0 if waits else math.ceil(remaining / (others or len(workers)))
            self._served.add(name)
        else:
            batch = max(1, int(BATCH_SECONDS / self._task_seconds))
            n = math.ceil(remaining / (2 * len(workers)))
            if self._schedule == "guided":
                n = max(n, self._chunk or 1)
            else:
                n = self._chunk or min(batch, max(n, min(batch // 50, remaining // len(workers))))
            # No reserve of long tasks, or of the last ones: another worker will be free earlier.
            is_long = n * self._task_seconds > 2 * BATCH_SECONDS
            if holds and (holds > n or is_long or remaining <= len(workers)):
                n = 0
        return [self.pending.popleft() for _ in range(min(n, remaining))]

    def measured(self, seconds: float) -> None:
        self._task_seconds = max(seconds, 1e-7)


class Fork(serving.Calls):
    """A call that ``Farm.fork`` has begun; ``Farm.join`` waits for its result."""

    def __init__(self, farm: Farm, worker: Name | None, function: serving.Call, args: Any) -> None:
        self._worker, self.moves = worker, worker is None
        super().__init__(farm, function, [args])

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        fits = self.pending and self._worker in (None, name)
        return [self.pending.popleft()] if fits else ()


class Farm(serving.Caller):
    """Workers and their tasks. ``connect`` makes it; as a context manager it releases them.

    ``workers`` is the list of the names of the workers that live. ``report()`` gives, by name, the
    number of calls that each has made, the seconds it took, and the number of calls it has stolen.
    ``close()`` releases the workers, which first finish what they do.
    """

    def map(
        self,
        function: Callable[..., Any] | str,
        *iterables: Iterable[Any],
        schedule: str = "dynamic",
        chunk: int = 0,
        unordered: bool = False,
        progress: bool | None = None,
    ) -> Tasks:
        """Call a function with each item, on the workers; the call itself does not wait.

        Workers get further tasks only while the program reads results. A task of a worker that has
        died is given to another worker.

        Args:
            function: a function, or the name of one that was injected.
            iterables: the items; of several iterables one item each, as the built-in ``map`` does.
            schedule: which worker gets which tasks. ``"dynamic"``: a worker gets the next chunk
                when it has finished the last one. ``"guided"``: the same, with chunks that shrink
                towards the end. ``"static"``: each worker gets an equal share at the start.
                ``"stealing"``: the same, and a worker that has finished takes half of another's.
            chunk: number of tasks in a chunk; for ``"guided"`` the least number. 0: as many short
                tasks as take 50 ms.
            unordered: yield each result as it arrives, not in the order of the items.
            progress: show a progress bar; by default in a notebook, after a second.
        Raises:
            EncodeError: the function cannot be sent.
            TaskFailed: (when results are read) a task raised.
            TaskPoisoned: (when results are read) two workers have died in the same task.
            WorkersLost: (when results are read) no worker lives any longer.
        """
        if schedule not in SCHEDULES or chunk < 0:
            raise ValueError(f"schedule is one of {', '.join(SCHEDULES)}; chunk is 0 or more")
        call, items = self.function(function), list(zip(*iterables, strict=False))
        bar = serving.bar(self.sfm, len(items), call.name, progress)
        options: dict[str, Any] = {"schedule": schedule, "chunk": chunk, "unordered": unordered}
        return Tasks(self, call, items, bar=bar, **options)

    def fork(self, worker: Name | None, function: Callable[..., Any] | str, *args: Any) -> Fork:
        """Begin one call on a worker; ``join`` waits for its result.

        Args:
            worker: the worker's name or rank; None: any worker.
            function: a function, or the name of one that was injected.
            args: the arguments of the call.
        Raises:
            EncodeError: the function cannot be sent.
            TypeError: an argument cannot be sent.
            UnknownName: there is no such worker.
        """
        if why := serving.bad_argument(args, {}):
            raise TypeError(f"{serving.name_of(function)}: {why}")
        name = None if worker is None else self.link.name_of(worker)
        forked = Fork(self, name, self.function(function), args)
        self._always.append(forked)
        return forked

    def join(self, forked: Fork | Iterable[Fork]) -> Any:
        """Wait for a forked call and return its result; for several calls, a list of results.

        Raises:
            TaskFailed: the call raised.
            TaskPoisoned: the call may run on any worker, and two have died in it.
        """
        if not isinstance(forked, Fork):
            return [self.join(call) for call in list(forked)]
        if forked.finish():
            return forked.results[0]
        raise forked.failures[0]

    def inject(self, worker: Name | None, code: Any = (), data: Any = None) -> None:
        """Define names on a worker. ``fork`` and ``map`` can call them by name, and functions that
        are sent later find there the globals that they lack.

        Args:
            worker: the worker's name or rank; None: all workers.
            code: a function, a class, a module or Python text, or a list of them.
            data: a dictionary of other values by name.
        """
        code = list(code) if isinstance(code, (list, tuple)) else [code]
        names = self.workers if worker is None else [worker]
        self.join([self.fork(name, "inject", code, data or {}) for name in names])

    def everywhere(self, function: Callable[..., Any] | str, *args: Any) -> list[Any]:
        """Call a function once on each worker, all at the same time; return a list of results."""
        return list(self.join([self.fork(name, function, *args) for name in self.workers]))


class _Futures(Tasks):
    """The calls of an executor. Any thread may add calls; their results go to futures."""

    def __init__(self, farm: Farm) -> None:
        super().__init__(farm, serving.Call("", ""), ())
        self.new: deque[_Submitted] = deque()
        self.open: dict[int, _Submitted] = {}
        self.over, self.broken, self.lock = False, "", threading.Lock()
        self._ids = itertools.count()

    def call(self, index: int) -> serving.Call:
        return self.open[index][1]

    def encode(
        self, indices: Sequence[int]
    ) -> tuple[Sequence[serving.CallIds], Sequence[serving.CallData]]:
        data = [(which, [args], [kwargs]) for which, _, args, kwargs in map(self.call, indices)]
        return [(self.number, [index]) for index in indices], data

    def is_open(self, index: int) -> bool:
        return index in self.open

    def complete(self) -> bool:
        return False

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        while chosen := super().choose(name, holds):
            begun = [
                index for index in chosen if self.open[index][0].set_running_or_notify_cancel()
            ]
            for index in set(chosen).difference(begun):
                del self.open[index]
            if begun:
                return begun
        return ()

    def put(self, indices: Sequence[int], values: Sequence[Any]) -> None:
        for index, value in zip(indices, values, strict=True):
            if index in self.open:  # otherwise the call was made twice
                self.open.pop(index)[0].set_result(value)

    def fail(self, index: int, failure: TaskFailed) -> None:
        error = failure.__cause__
        if isinstance(error, Exception):  # callers of a future expect the function's own error
            error.__cause__, failure.__cause__ = failure, None
        self.open.pop(index)[0].set_exception(error if isinstance(error, Exception) else failure)

    def run(self, done: Callable[[], object]) -> None:
        """Make the calls, in a thread of its own, until it is ``over`` and no call is open."""
        try:
            while self.new or self.open or not self.over:
                while self.new:
                    self.pending.append(index := next(self._ids))
                    self.open[index] = self.new.popleft()
                self._farm.turn(self, quiet=0.5)
        except SFMError as error:  # no worker lives any longer
            with self.lock:
                self.broken = str(error)
            for future, _ in [*self.open.values(), *self.new]:
                if not future.cancelled():
                    future.set_exception(futures.BrokenExecutor(self.broken))
        finally:
            self._farm.close()
            done()

    def stop(self, thread: threading.Thread | None = None) -> None:
        """Let the thread end when all calls are done; if it is given, wait for its end."""
        with self.lock:
            self.over = True
        with suppress(SFMError):  # the thread has ended
            self._farm.link.wake()
        if thread is not None:
            thread.join()


class Executor(futures.Executor):
    """A ``concurrent.futures.Executor`` on the workers of a farm, or on processes of its own.

    A function that a future runs raises its own error there, as with the standard executors.

    Args:
        workers: a farm, whose workers it uses; an endpoint, whose world has the workers; a number
            of processes to start on this machine, which end with the executor; or None: this
            process's only endpoint.
    """

    def __init__(self, workers: Farm | Endpoint | int | None = None) -> None:
        started = None
        if isinstance(workers, int):
            started = serving.LocalProcesses(workers)
            workers = started.sfm
        if isinstance(workers, Farm):  # some may have died since it has heard of them
            self._farm = Farm(workers.sfm, workers.workers, _Worker, "farm", partly=True)
        else:
            self._farm = connect(workers)
        self._tasks = _Futures(self._farm)
        run, done = self._tasks.run, started.close if started else bool
        name = FUTURES if len(open_endpoints()) == 1 else f"{FUTURES}-of-{self._farm.sfm.world}"
        self._thread = threading.Thread(target=run, args=(done,), name=name, daemon=True)
        self._thread.start()
        weakref.finalize(self, self._tasks.stop).atexit = False
        atexit.register(self._tasks.stop, self._thread)  # all submitted calls are made

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Begin a call, as in the standard library.

        Raises:
            EncodeError: the function cannot be sent.
            BrokenExecutor: no worker lives any longer.
            RuntimeError: the executor was shut down.
        """
        future: futures.Future[Any] = futures.Future()
        call = self._farm.function(fn)._replace(args=args, kwargs=kwargs)
        with self._tasks.lock:
            if self._tasks.broken:
                raise futures.BrokenExecutor(self._tasks.broken)
            if self._tasks.over:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._tasks.new.append((future, call))
        self._farm.link.wake()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the executor, as in the standard library. Its workers are released after the last
        call."""
        if cancel_futures:
            for future, _ in [*self._tasks.open.values(), *self._tasks.new]:
                future.cancel()
        self._tasks.stop(self._thread if wait else None)
        if wait:
            atexit.unregister(self._tasks.stop)
