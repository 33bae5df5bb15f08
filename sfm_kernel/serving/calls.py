"""Calls of functions, and their results."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sfm_kernel.directory import Name
from sfm_kernel.errors import TaskFailed
from sfm_kernel.serving.callee import CallData, CallIds
from sfm_kernel.serving.functions import Which

if TYPE_CHECKING:
    from sfm_kernel.serving.caller import Caller


class Call(NamedTuple):
    """A function and its arguments."""

    which: Which
    name: str
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = {}

    def __str__(self) -> str:
        shown = [*map(reprlib.repr, self.args)]
        shown += [f"{name}={reprlib.repr(value)}" for name, value in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


class Calls(Iterator[Any]):
    """Calls of a function. Iteration yields their results, in order or as they arrive.

    A call that has failed raises TaskFailed at its turn; iterating again continues behind it.

    Args:
        args: the arguments of each call.
        unordered: yield results as they arrive.
        bar: a progress bar, or None.
    Attributes:
        results, failures: those that have arrived, by the index of the call.
        pending: the indices of the calls that were not given to a process.
        number: by which the caller and its processes know these calls.
    """

    moves = True
    """Whether another process makes the calls of a process that has died."""
    shares = False
    """Whether the processes learn each other's names, so that they can steal."""

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
        self._next, self._arrived = 0, deque[int]()
        self.number = caller.add(self)
        caller.turn(self, wait=False)

    # ---- for the program ----

    def __len__(self) -> int:
        return len(self._args)

    def __next__(self) -> Any:
        if self._next >= len(self._args):
            raise StopIteration
        index, self._next = self._next, self._next + 1
        if self._unordered:
            self._drive(lambda: self._arrived)
            index = self._arrived.popleft()
        elif index not in self.results:
            self._drive(lambda: index in self.results or index in self.failures)
        if index in self.failures:
            raise self.failures[index]
        return self.results[index]

    def __iter__(self) -> Iterator[Any]:
        results, ordered = self.results, not self._unordered
        while self._next < len(self._args):
            if ordered and self._next in results:  # saves time when the calls take none
                self._next += 1
                yield results[self._next - 1]
            else:
                yield next(self)

    def finish(self) -> dict[int, Any]:
        """Wait for all calls; returns the results of those that did not fail, by index."""
        self._drive(self.complete)
        return self.results

    def cancel(self) -> None:
        """Drop the calls that have not begun, and end iteration; on engines end those that run."""
        self._next = len(self._args)
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
        """Take calls out of ``pending`` for a process, which now has ``holds`` calls; returns their
        indices. To override."""
        raise NotImplementedError

    def call(self, index: int) -> Call:
        """The call with this index."""
        return self._function._replace(args=self._args[index])

    def encode(self, indices: Sequence[int]) -> tuple[Sequence[CallIds], Sequence[CallData]]:
        """The calls with these indices, as they are sent."""
        args = self._args
        return [(self.number, indices)], [
            (self._function.which, [args[index] for index in indices], None)
        ]

    def is_open(self, index: int) -> bool:
        """Whether the call's result is awaited."""
        return index not in self.results and index not in self.failures

    def complete(self) -> bool:
        """Whether every call has a result or has failed."""
        return len(self.results) + len(self.failures) >= len(self._args)

    def put(self, indices: Sequence[int], values: Sequence[Any]) -> None:
        """Store results. A call that was made twice may have one already."""
        if self._unordered or self._bar is not None:
            self._arrived.extend(fresh := [index for index in indices if self.is_open(index)])
            self._show(len(fresh))
        self.results.update(zip(indices, values, strict=True))

    def fail(self, index: int, failure: TaskFailed) -> None:
        """Store the failure of a call."""
        failure.tasks, self.failures[index] = self, failure
        self._arrived.append(index)
        self._show(1)

    def _show(self, count: int) -> None:
        if self._bar is not None:
            self._bar.update(count)

    def measured(self, seconds: float) -> None:
        """Take note of how long the last calls took, on average. To override."""
