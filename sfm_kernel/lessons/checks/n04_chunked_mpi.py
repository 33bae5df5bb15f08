"""04-chunked-mpi: an array that goes through all processes in chunks."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from sfm_kernel.lessons.examine.check import Arguments, Check

_LENGTH, _CHUNK = 950, 100
_CHUNKS = -(-_LENGTH // _CHUNK)


def _array_at_rank_0(size: int, random: Random) -> Arguments:
    data = np.random.default_rng(random.randrange(2**32)).random(_LENGTH)
    return [(data, _CHUNK), *[(None, _CHUNK)] * (size - 1)]


def _for_all(given: Arguments) -> list[Any]:
    return [given[0][0]] * len(given)


PIPELINE = Check(
    "pipeline",
    "passes rank 0's array on from rank to rank in chunks; every process returns the whole array",
    _array_at_rank_0,
    _for_all,
    fewest=lambda size: (size - 1) * _CHUNKS,
    exact=True,
    note="The last chunk may be shorter than the others, and the last rank sends nothing on.",
)
