"""01-cpi: π by Simpson's rule, computed by all processes together."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.examine.check import Arguments, Check


def _n_at_rank_0(size: int, random: Random) -> Arguments:
    return [(random.randint(3, 40),), *[(None,)] * (size - 1)]


def _simpson(given: Arguments) -> list[Any]:
    n = given[0][0]

    def f(x: float) -> float:
        return 4 / (1 + x * x)

    h = 1 / n
    total = sum(f(i * h) + 4 * f((i + 0.5) * h) + f((i + 1) * h) for i in range(n))
    return [h / 6 * total, *[None] * (len(given) - 1)]


SIMPSON = Check(
    "simpson",
    "rank 0 is given n, others None; rank 0 returns π by Simpson's rule with n intervals",
    _n_at_rank_0,
    _simpson,
    note="Every interval belongs to one process; if n is small, some have none and add 0.",
)
