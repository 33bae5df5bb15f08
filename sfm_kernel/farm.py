"""A task farm in the manner of Trickle, River's layer: small, on ``send`` and ``recv`` alone.

    >>> from sfm_kernel import farm
    >>> def program(sfm):
    ...     if sfm.rank:
    ...         return farm.serve(sfm)  # a notebook's engines do that by themselves
    ...     with farm.connect(sfm) as workers:
    ...         return sum(workers.map(abs, range(-10, 10)))
    >>> sfm_kernel.run(program, n=3)[0]
    100

Here is who is given which task, and the words for it; what becomes of a call: ``serving.caller``.

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
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import SFMError, TaskFailed
from sfm_kernel.message import Message
from sfm_kernel.serving import serve
from sfm_kernel.transport.base import Name

__all__ = ["Executor", "Farm", "Tasks", "connect", "serve"]

SCHEDULES = ("dynamic", "guided", "static", "stealing")
ENOUGH = 0.05
"""Seconds of short tasks that a worker is given at a time, and then as many in reserve."""
_Promised = tuple[futures.Future[Any], serving.Call]


def connect(sfm: Endpoint | None = None, names: Iterable[Name] | None = None) -> Farm:
    """A farm of these workers; by default of all others that have a rank: a notebook's engines.

    ``sfm``: this process's endpoint, where it has several. Raises: WorkersLost, UnknownName.
    """
    sfm = sfm or serving.only_endpoint()
    return Farm(sfm, serving.workers(sfm) if names is None else names, _Worker, "farm")


class _Worker(serving.Callee):
    """Makes calls; when it has none it asks the others, one after the other, for half of theirs."""

    def __init__(self, sfm: Endpoint, owner: Name, key: str) -> None:
        super().__init__(sfm, owner, key)
        self._peers: list[Name] = []
        self._victims: list[Name] = []  # who is still to be asked
        self._asks = False

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
            with suppress(SFMError):  # it has died
                self.tell(self._victims.pop(), steal=True)
                self._asks = True
        return super().work()

    def _give(self, thief: Name) -> None:
        robbed = self.cut(sum(map(len, self.queue)) // 2)
        self.answer(parts=robbed["parts"], thief=thief)  # it knows before the thief has them
        with suppress(SFMError):  # the thief has died: the owner gives them to another
            self.tell(thief, peers=[*self._peers, self.sfm.name], **robbed)


class Tasks(serving.Calls):
    """What ``map`` gives: results, in order or as they come; see ``serving.Calls``."""

    def __init__(
        self, farm: Farm, *what: Any, schedule: str = "dynamic", chunk: int = 0, **how: Any
    ) -> None:
        self._farm, self._schedule, self._chunk = farm, schedule, chunk
        self._pace, self._served, self.shares = math.inf, set[Name](), schedule == "stealing"
        super().__init__(farm, *what, **how)

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        left, workers = len(self.pending), self._farm.workers
        if self._schedule in ("static", "stealing"):
            others = len(set(workers) - self._served)
            n = 0 if others and name in self._served else math.ceil(left / (others or len(workers)))
            self._served.add(name)
        else:
            n, enough = math.ceil(left / (2 * len(workers))), max(1, int(ENOUGH / self._pace))
            if self._schedule == "guided":
                n = max(n, self._chunk or 1)
            else:
                n = self._chunk or min(enough, max(n, min(enough // 50, left // len(workers))))
            # No reserve of long ones, or of the last: another worker will be free before.
            if holds and (holds > n or n * self._pace > 2 * ENOUGH or left <= len(workers)):
                n = 0
        return [self.pending.popleft() for _ in range(min(n, left))]

    def took(self, seconds: float) -> None:
        self._pace = max(seconds, 1e-7)


class Fork(serving.Calls):
    """A function that was forked, on one worker or (None) on any."""

    def __init__(self, farm: Farm, worker: Name | None, function: serving.Call, args: Any) -> None:
        self._worker, self.moves = worker, worker is None
        super().__init__(farm, function, [args])

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        fits = self.pending and self._worker in (None, name)
        return [self.pending.popleft()] if fits else ()


class Farm(serving.Caller):
    """Workers and their tasks. Made by ``connect``; a context manager that releases them."""

    def map(
        self,
        function: Callable[..., Any] | str,
        *iterables: Iterable[Any],
        schedule: str = "dynamic",
        chunk: int = 0,
        unordered: bool = False,
        progress: bool | None = None,
    ) -> Tasks:
        """Call it with each item (or one of each iterable), by whoever is free.

        Args:
            function: or the name of one that was injected.
            schedule: dynamic: chunks for who has done the last; guided: ever smaller ones; static:
                all at once, in equal parts; stealing: the same, and who has done its part robs.
            chunk: tasks at a time (guided: at least). 0: as many short ones as take 50 ms.
            progress: show a bar; by default in a notebook, after a second.
        Order: of the items, unless ``unordered``. More is given out while results are asked for.
        Raises: EncodeError; and when results are asked for TaskFailed, TaskPoisoned, WorkersLost.
        """
        if schedule not in SCHEDULES or chunk < 0:
            raise ValueError(f"schedule is one of {', '.join(SCHEDULES)}; chunk is 0 or more")
        what = self.function(function), list(zip(*iterables, strict=False))
        bar = serving.bar(self.sfm, len(what[1]), what[0].name, progress)
        return Tasks(self, *what, schedule=schedule, chunk=chunk, unordered=unordered, bar=bar)

    def fork(self, worker: Name | None, function: Callable[..., Any] | str, *args: Any) -> Fork:
        """Call a function, or what was injected by this name, on a worker (None: on any)."""
        if why := serving.bad_argument(args, {}):
            raise TypeError(f"{serving.name_of(function)}: {why}")
        name = None if worker is None else self.link.name_of(worker)
        forked = Fork(self, name, self.function(function), args)
        self._always.append(forked)
        return forked

    def join(self, forked: Fork | Iterable[Fork]) -> Any:
        """What a forked function returned; of several a list. Raises TaskFailed."""
        if not isinstance(forked, Fork):
            return [self.join(one) for one in list(forked)]
        if forked.finish():
            return forked.results[0]
        raise forked.failures[0]

    def inject(self, worker: Name | None, code: Any = (), data: Any = None) -> None:
        """Put functions, classes, modules or Python text, and data by name, into a worker (None:
        all). ``fork`` and ``map`` call them by name, and functions find there what they lack."""
        code = list(code) if isinstance(code, (list, tuple)) else [code]
        names = self.workers if worker is None else [worker]
        self.join([self.fork(name, "inject", code, data or {}) for name in names])

    def everywhere(self, function: Callable[..., Any] | str, *args: Any) -> list[Any]:
        """Call a function once on each worker, at the same time; what they return."""
        return list(self.join([self.fork(one, function, *args) for one in self.workers]))


class _Futures(Tasks):
    """The calls of an executor: more are added by any thread; results go to futures."""

    def __init__(self, farm: Farm) -> None:
        super().__init__(farm, serving.Call("", ""), ())
        self.new: deque[_Promised] = deque()
        self.open: dict[int, _Promised] = {}
        self.over, self.broken, self.lock = False, "", threading.Lock()
        self._ids = itertools.count()

    def call(self, at: int) -> serving.Call:
        return self.open[at][1]

    def parts(self, ats: Sequence[int]) -> tuple[Sequence[serving.Part], Sequence[serving.Group]]:
        calls = map(self.call, ats)
        groups = [(which, [args], [kwargs]) for which, _, args, kwargs in calls]
        return [(self.number, [at]) for at in ats], groups

    def is_open(self, at: int) -> bool:
        return at in self.open

    def complete(self) -> bool:
        return False

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        while chosen := super().choose(name, holds):
            begun = [at for at in chosen if self.open[at][0].set_running_or_notify_cancel()]
            for at in set(chosen).difference(begun):
                del self.open[at]
            if begun:
                return begun
        return ()

    def put(self, ats: Sequence[int], values: Sequence[Any]) -> None:
        for at, value in zip(ats, values, strict=True):
            if at in self.open:  # else it was made twice
                self.open.pop(at)[0].set_result(value)

    def fail(self, at: int, failure: TaskFailed) -> None:
        error = failure.__cause__
        if isinstance(error, Exception):  # as its callers expect it
            error.__cause__, failure.__cause__ = failure, None
        self.open.pop(at)[0].set_exception(error if isinstance(error, Exception) else failure)

    def run(self, done: Callable[[], object]) -> None:
        """What the thread does, until it is ``over`` and all has ended."""
        try:
            while self.new or self.open or not self.over:
                while self.new:
                    self.pending.append(at := next(self._ids))
                    self.open[at] = self.new.popleft()
                self._farm.turn(self, quiet=0.5)
        except SFMError as error:  # no worker lives any more
            with self.lock:
                self.broken = str(error)
            for future, _ in [*self.open.values(), *self.new]:
                if not future.cancelled():
                    future.set_exception(futures.BrokenExecutor(self.broken))
        finally:
            self._farm.close()
            done()

    def stop(self, thread: threading.Thread | None = None) -> None:
        """Let the thread end when all is done; and, with it, wait for that."""
        with self.lock:
            self.over = True
        with suppress(SFMError):  # it has ended
            self._farm.link.wake()
        if thread is not None:
            thread.join()


class Executor(futures.Executor):
    """``concurrent.futures`` on the workers of a farm, or of an endpoint's world (None: of the only
    one), or on so many processes of its own, which end with it."""

    def __init__(self, workers: Farm | Endpoint | int | None = None) -> None:
        own = serving.LocalProcesses(workers) if isinstance(workers, int) else None
        given = (workers.sfm, workers.workers) if isinstance(workers, Farm) else (workers, None)
        self._farm = connect(*((own.sfm, None) if own else given))
        self._tasks = _Futures(self._farm)
        run, done = self._tasks.run, own.close if own else bool
        self._thread = threading.Thread(target=run, args=(done,), name="sfm-futures", daemon=True)
        self._thread.start()
        weakref.finalize(self, self._tasks.stop).atexit = False
        atexit.register(self._tasks.stop, self._thread)  # what was submitted is done

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """As the standard has it. A function that cannot be sent raises EncodeError here."""
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
        """As the standard has it; the workers are released when all has been done."""
        if cancel_futures:
            for future, _ in [*self._tasks.open.values(), *self._tasks.new]:
                future.cancel()
        self._tasks.stop(self._thread if wait else None)
        if wait:
            atexit.unregister(self._tasks.stop)
