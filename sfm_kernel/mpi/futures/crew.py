"""Worker processes, as the master sees them: who is idle, and what the others are doing.

Master and workers talk in a context of their own. To a worker go messages with ``what``: "setup",
"initialize", "task", "stop"; all but the last are answered. A manager's messages have its number as
``pool``, and so have the answers. It wakes itself with a message that has nothing else.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from typing import Any

from sfm_kernel.endpoint import UNBOUNDED, Context, Endpoint
from sfm_kernel.errors import PeerLost, SFMError
from sfm_kernel.mpi.futures.managing import Options, Pool
from sfm_kernel.mpi.futures.tasks import pack, read_outcome
from sfm_kernel.transport.base import Name

LOOK_SECONDS = 0.5
"""How often a manager that waits looks for workers that have died."""

_FOR_WORKERS = ("sys.path", "path", "wdir", "env", "standin", "main program", "globals")
"""The options that workers are set up with; see ``worker``."""


class Crew:
    """Workers, shared by all executors whose tasks they do.

    Args:
        sfm: the master's endpoint.
        channel: the name of the context.
        names: the workers' names, by rank.
        by_value: the workers have another ``__main__``.
    """

    def __init__(
        self, sfm: Endpoint, channel: str, names: Sequence[Name], by_value: bool = False
    ) -> None:
        self.sfm, self.channel, self.names, self.by_value = sfm, channel, list(names), by_value
        self.beginning = threading.Lock()
        self.is_set_up = False
        self._members = [one for one in sfm.members() if one.name in self.names]
        self._idle = deque(self.names)
        self._waiting: deque[Manager] = deque()
        self._lock = threading.Lock()
        self._numbers = itertools.count()

    def new_number(self) -> int:
        """A number for a manager."""
        return next(self._numbers)

    def rank_of(self, name: Any) -> int:
        """The rank of the worker with this name."""
        return self.names.index(name)

    @property
    def has_idle(self) -> bool:
        """Whether somebody has nothing to do."""
        return bool(self._idle)

    def take(self, manager: Manager) -> Name | None:
        """An idle worker. If there is none, the manager is woken when one may be idle."""
        with self._lock:
            if self._idle:
                return self._idle.popleft()
            if manager not in self._waiting:
                self._waiting.append(manager)
            return None

    def give(self, name: Name) -> None:
        """This worker is idle again."""
        with self._lock:
            self._idle.append(name)
            waiting = self._waiting.popleft() if self._waiting else None
        if waiting is not None:
            waiting.wake()

    def look(self) -> None:
        """Raise PeerLost if a worker has died."""
        for member in self._members:
            if not self.sfm.alive(member):
                raise PeerLost(member.name)

    def stop(self) -> None:
        """Tell the workers that no task will come any more."""
        context = Context(self.sfm, self.channel, UNBOUNDED, library=True)
        for name in self.names:
            with suppress(SFMError):
                context.send(dest=name, what="stop")


class Manager:
    """Brings the tasks of one pool to the workers, and the results to its futures."""

    def __init__(self, pool: Pool, crew: Crew) -> None:
        self._pool, self._crew, self._number = pool, crew, crew.new_number()
        self._context = Context(crew.sfm, crew.channel, UNBOUNDED, library=True)
        self._context.doing = "an executor waits for results"
        self._queue, self._pending = pool.queue, dict[Name, Future[Any]]()
        self._ended = self._woken = False
        self._looked = time.monotonic()

    def manage(self, options: Options) -> None:
        """Make the workers ready, and do what is submitted until the queue has come to its end."""
        try:
            with self._crew.beginning:
                self._begin(options)
            self._pool.wake = self.wake
            self._pool.setup(len(self._crew.names))
            self._context.tick = self._tick
            while self._dispatch() or self._pending:
                self._receive()
        except BaseException as failure:  # noqa: BLE001 - told to all futures
            self._give_up(failure)

    # ---- the beginning ----

    def _begin(self, options: Options) -> None:
        first = not self._crew.is_set_up
        self._crew.is_set_up = True
        names = ("initializer", "initargs", "initkwargs")
        initializer = {name: options.pop(name) for name in names if name in options}
        if first:
            chosen = {name: options[name] for name in _FOR_WORKERS if options.get(name) is not None}
            self._ask("setup", chosen, "the workers could not be set up")
        if initializer:
            self._ask("initialize", initializer, "the initializer failed")

    def _ask(self, what: str, value: Any, why: str) -> None:
        """Let all workers do something, and wait until they have.

        Raises:
            BrokenExecutor: one of them could not; the text begins with ``why``.
        """
        packed = pack(value, by_value=self._crew.by_value)
        for name in self._crew.names:
            self._context.send(dest=name, pool=self._number, what=what, **packed)
        answers = [self._context.recv(src=name, pool=self._number) for name in self._crew.names]
        for worker, answer in enumerate(answers):
            try:
                read_outcome(answer)
            except BaseException as error:
                text = f"{why}: worker {worker} raised {type(error).__name__}: {error}"
                raise BrokenExecutor(text) from error

    # ---- tasks and results ----

    def wake(self) -> None:
        """There may be something to do: look at the queue. From any thread."""
        if not self._woken:
            self._woken = True
            with suppress(SFMError):
                self._context.send(dest=self._crew.sfm.name, pool=self._number)

    def _dispatch(self) -> bool:
        """Send tasks to idle workers; false when the last has been sent."""
        self._woken = False
        while not self._ended and self._queue:
            worker = self._crew.take(self)
            if worker is None:
                break
            if not self._send(worker):
                self._crew.give(worker)
        return not self._ended

    def _send(self, worker: Name) -> bool:
        """Send the next task; false if the worker got none."""
        try:
            item = self._queue.pop()
        except LookupError:  # it was cancelled
            return False
        if item is None:
            self._ended = True
            return False
        future, task = item
        if not future.set_running_or_notify_cancel():
            return False
        self._pending[worker] = future
        try:
            packed = pack(task, by_value=self._crew.by_value)
            self._context.send(dest=worker, pool=self._number, what="task", **packed)
        except PeerLost:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises when it is pickled
            del self._pending[worker]
            future.set_exception(error)
            return False
        return True

    def _receive(self) -> None:
        """Wait for a result, or for something in the queue."""
        try:
            message = self._context.recv(pool=self._number)
        except _Look:
            return
        if "good" not in message:
            return
        future = self._pending.pop(message.src)
        self._crew.give(message.src)
        try:
            future.set_result(read_outcome(message))
        except BaseException as error:  # noqa: BLE001 - whatever the task has raised
            future.set_exception(error)

    def _tick(self) -> None:
        # An executor that nobody has any more ends its queue without waking anybody.
        if self._queue and not self._ended and self._crew.has_idle:
            raise _Look
        now = time.monotonic()
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            self._crew.look()

    def _give_up(self, failure: BaseException) -> None:
        text = str(failure) if isinstance(failure, BrokenExecutor) else f"{failure!r}"
        if isinstance(failure, PeerLost):
            text = f"worker {self._crew.rank_of(failure.peer)} has died, and its task with it"
        self._pool.broken(text)
        for future in self._pending.values():
            future.set_exception(BrokenExecutor(text))


class _Look(Exception):
    """Ends a wait: there is something in the queue."""
