"""Mechanisms measured in turns: a slow moment of the machine affects all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Protocol, TypeVar

FEWEST = 2
"""The smallest number of operations in one measurement."""

Work = TypeVar("Work")


class Answer(Protocol):
    """The answer of processes that have measured; its ``seconds`` are those of one operation."""

    def __getitem__(self, name: str, /) -> Any: ...


def in_turns(
    asking: Mapping[str, Callable[[Work, int], Answer]],
    works: Sequence[Work],
    repeat: int,
    seconds: float,
    most: int = 20_000,
) -> Iterator[tuple[int, Work, str, Answer]]:
    """Measure every work with every mechanism, in each of ``repeat`` rounds.

    Yields round, work, mechanism, and the answer.

    Args:
        asking: mechanism -> ``ask(work, count)``.
        seconds: of one measurement, within the limits of ``FEWEST`` and ``most`` operations.
    """
    counts: dict[tuple[Work, str], int] = {}
    for number, work, mechanism in product(range(repeat), works, asking):
        ask, cell = asking[mechanism], (work, mechanism)
        if cell not in counts:  # the first call opens channels; the second gives the count
            ask(work, 1)
            counts[cell] = max(FEWEST, min(most, int(seconds / ask(work, 5)["seconds"])))
        yield number, work, mechanism, ask(work, counts[cell])
