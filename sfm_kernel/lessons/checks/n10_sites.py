"""10-sites: a sum with one message between the sites in each direction."""

from __future__ import annotations

from collections.abc import Sequence

from sfm_kernel.lessons.checks.common import a_number_each, sum_for_all
from sfm_kernel.lessons.examine.check import Check


def _two_sites(size: int) -> Sequence[str]:
    """The first half of the ranks, including a middle one, is at A, the rest at B."""
    return ["A" if 2 * rank < size else "B" for rank in range(size)]


FAR_SUM = Check(
    "far_sum",
    "every process returns the sum of all numbers; two messages go between the sites A and B",
    a_number_each,
    sum_for_all,
    sites=_two_sites,
    most_between=lambda size: 2 if size > 1 else 0,
)
