"""Calls of functions, and what they give."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sfm_kernel.errors import TaskFailed
from sfm_kernel.serving.callee import Group, Part
from sfm_kernel.serving.functions import Which
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.serving.caller import Caller


class Call(NamedTuple):
    """A function, and what it is called with."""

    which: Which
    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}

    def __str__(self) -> str:
        shown = [*map(reprlib.repr, self.args)]
        shown += [f"{name}={reprlib.repr(value)}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


class Calls(Iterator[Any]):
    """Calls of a function. Iteration gives what they return, in order or as it comes.

    Where a call has failed it raises TaskFailed, and goes on behind it if asked again.

    Args:
        args: those of each call.
    Attributes:
        results, failures: what there is so far, by the number of the call.
        pending: the numbers of those that nobody has been given.
    """

    moves = True
    """Whether another process makes the call of one that has died."""
    shares = False
    """Whether the processes are told of each other."""

    def __init__(
        self,
        caller: Caller,
        function: Call,
        args: Sequence[Sequence[Any]],
        unordered: bool = False,
        bar: Any = None,
    ) -> None:
        self.results: dict[int, Any] = {}
        self.failures: dict[int, TaskFailed] = {}
        self.pending = deque(range(len(args)))
        self._function, self._args = function, args
        self._caller, self._unordered, self._bar = caller, unordered, bar
        self._at, self._came = 0, deque[int]()
        self.number = caller.add(self)
        caller.turn(self, wait=False)

    # ---- for who has made them ----

    def __len__(self) -> int:
        return len(self._args)

    def __next__(self) -> Any:
        if self._at >= len(self._args):
            raise StopIteration
        at, self._at = self._at, self._at + 1
        if self._unordered:
            self._drive(lambda: self._came)
            at = self._came.popleft()
        elif at not in self.results:
            self._drive(lambda: at in self.results or at in self.failures)
        if at in self.failures:
            raise self.failures[at]
        return self.results[at]

    def __iter__(self) -> Iterator[Any]:
        results, ordered = self.results, not self._unordered
        while self._at < len(self._args):
            if ordered and self._at in results:  # the shortest way, for calls that take no time
                self._at += 1
                yield results[self._at - 1]
            else:
                yield next(self)

    def finish(self) -> dict[int, Any]:
        """Wait for all; the results of those that have not failed, by the number of the call."""
        self._drive(self.complete)
        return self.results

    def cancel(self) -> None:
        """Make no more of them, and iterate no further; on engines end those that are made now."""
        self._at = len(self._args)
        self._caller.cancel(self)

    def _drive(self, done: Callable[[], object]) -> None:
        try:
            while not done():
                self._caller.turn(self)
        except KeyboardInterrupt:
            self.cancel()
            raise

    # ---- for the caller ----

    def choose(self, name: Name, holds: int) -> Sequence[int]:
        """Which of ``pending`` a process is given now, which ``holds`` so many. To override."""
        raise NotImplementedError

    def call(self, at: int) -> Call:
        """One of them."""
        return self._function._replace(args=self._args[at])

    def parts(self, ats: Sequence[int]) -> tuple[Sequence[Part], Sequence[Group]]:
        """Some of them, as they travel."""
        every = self._args
        group = self._function.which, [every[at] for at in ats], None
        return [(self.number, ats)], [group]

    def is_open(self, at: int) -> bool:
        """Whether its result is awaited."""
        return at not in self.results and at not in self.failures

    def complete(self) -> bool:
        """Whether there is none left."""
        return len(self.results) + len(self.failures) >= len(self._args)

    def put(self, ats: Sequence[int], values: Sequence[Any]) -> None:
        """What calls have returned; some perhaps once more, since they were made twice."""
        if self._unordered or self._bar is not None:
            self._came.extend(fresh := [at for at in ats if self.is_open(at)])
            self._show(len(fresh))
        self.results.update(zip(ats, values, strict=True))

    def fail(self, at: int, failure: TaskFailed) -> None:
        """One has failed."""
        failure.tasks, self.failures[at] = self, failure
        self._came.append(at)
        self._show(1)

    def _show(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count)

    def took(self, seconds: float) -> None:
        """How long calls have taken now, on average."""
