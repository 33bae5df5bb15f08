"""Arguments and results of several exercises."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.examine.check import Arguments


def a_number_each(size: int, random: Random) -> Arguments:
    """Each rank gets a number."""
    return [(random.randint(-99, 99),) for _ in range(size)]


def from_the_left(given: Arguments) -> list[Any]:
    """Each rank returns the argument of the rank before; rank 0 that of the last."""
    return [given[rank - 1][0] for rank in range(len(given))]


def sum_for_all(given: Arguments) -> list[Any]:
    """Every rank returns the sum of all arguments."""
    return [sum(number for (number,) in given)] * len(given)
