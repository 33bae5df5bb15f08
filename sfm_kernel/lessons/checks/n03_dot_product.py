"""03-dot-product: a sum with the same bits on all ranks, and an exchange of neighbours' rows."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from sfm_kernel.lessons.examine.check import Arguments, Check


def _parts(size: int, random: Random) -> Arguments:
    return [(random.uniform(-1, 1) * 10.0 ** random.randint(-3, 3),) for _ in range(size)]


def _in_order(given: Arguments) -> list[Any]:
    (total,) = given[0]
    for (part,) in given[1:]:
        total += part
    return [total] * len(given)


def _rows(size: int, random: Random) -> Arguments:
    generator = np.random.default_rng(random.randrange(2**32))
    return [tuple(generator.integers(0, 100, (2, 6)).astype(float)) for _ in range(size)]


def _neighbours_rows(given: Arguments) -> list[Any]:
    last = len(given) - 1
    return [
        (given[rank - 1][1] if rank > 0 else None, given[rank + 1][0] if rank < last else None)
        for rank in range(len(given))
    ]


SAME_BITS = Check(
    "same_bits",
    "every process returns the sum of all parts, added in the order of the ranks: the same bits",
    _parts,
    _in_order,
    exact=True,
    seeds=3,
)

HALO = Check(
    "halo",
    "returns the last row of the rank before, the first row of the rank after (None at the ends)",
    _rows,
    _neighbours_rows,
    buffering=0,
)
