"""07-mpi: an exchange that needs no buffers, and the game of life."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from sfm_kernel.lessons.checks.common import a_number_each, from_the_left
from sfm_kernel.lessons.examine.check import Arguments, Check


def _board(size: int, random: Random) -> Arguments:
    generator = np.random.default_rng(random.randrange(2**32))
    steps = random.randint(1, 4)
    return [
        (generator.integers(0, 2, (random.randint(1, 3), 7), dtype=np.int64), steps)
        for _ in range(size)
    ]


def _lived(given: Arguments) -> list[Any]:
    board, steps = np.concatenate([rows for rows, _ in given]), given[0][1]
    shifts = [(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1) if (y, x) != (0, 0)]
    for _ in range(steps):
        around = sum(np.roll(board, shift, (0, 1)) for shift in shifts)
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(np.int64)
    return np.split(board, np.cumsum([len(rows) for rows, _ in given])[:-1])


SAFE_RING = Check(
    "safe_ring",
    "sends the number to the right by MPI, and returns the number from the left, without buffers",
    a_number_each,
    from_the_left,
    mpi=True,
    buffering=0,
)

LIFE = Check(
    "life",
    "returns this process's rows of the board (a torus) after `steps` steps of the game of life",
    _board,
    _lived,
    sizes=(1, 2, 3, 5),
    mpi=True,
)
