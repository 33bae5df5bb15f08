"""05-reduction-scaling: a sum in a tree."""

from __future__ import annotations

from typing import Any

from sfm_kernel.lessons.checks.common import a_number_each
from sfm_kernel.lessons.examine.check import Arguments, Check


def _sum_at_rank_0(given: Arguments) -> list[Any]:
    return [sum(number for (number,) in given), *[None] * (len(given) - 1)]


TREE_SUM = Check(
    "tree_sum",
    "rank 0 returns the sum of all numbers, others None; each receives at most log₂ p messages",
    a_number_each,
    _sum_at_rank_0,
    most=lambda size: size - 1,
    busiest=lambda size: (size - 1).bit_length(),
)
