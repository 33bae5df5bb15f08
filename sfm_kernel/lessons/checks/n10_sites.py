"""10-sites: a sum with one message between the sites in each direction."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from sfm_kernel.lessons.examine.check import Arguments, Check


def _numbers(size: int, random: Random) -> Arguments:
    return [(random.randint(-99, 99),) for _ in range(size)]


def _sum_for_all(given: Arguments) -> list[Any]:
    return [sum(number for (number,) in given)] * len(given)


def _two_sites(size: int) -> Sequence[str]:
    """The first half of the ranks, including a middle one, is at A, the rest at B."""
    return ["A" if 2 * rank < size else "B" for rank in range(size)]


FAR_SUM = Check(
    "far_sum",
    "every process returns the sum of all numbers; two messages go between the sites A and B",
    _numbers,
    _sum_for_all,
    sites=_two_sites,
    most_between=lambda size: 2 if size > 1 else 0,
)
