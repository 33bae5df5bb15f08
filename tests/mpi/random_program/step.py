"""A step of the program: its communicator, its dice, and its data."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
SMALL = [0, 1, 2, 3, 8, 31, 63, 100]
COUNTS = [*SMALL, 251, 252, 253, 259, 260, 261, 300, 1000, 2500, 6000, 40_000]
"""Elements of 8 bytes: around what fits into a post and into a meeting, up to 320 kB."""


class Part:
    """A communicator, with the ranks of its processes in MPI_COMM_WORLD; `far`: the remote ones."""

    def __init__(self, comm: Any, members: list[int], far: list[int] | None = None) -> None:
        self.comm, self.members, self.far = comm, members, far or []
        self.alone = False

    @property
    def is_mine(self) -> bool:
        return WORLD.rank in self.members


class Steps:
    """What all kinds of steps need. ``dice`` are thrown alike by the ranks of the communicator of
    the step, ``own`` by each rank alone."""

    def __init__(self, seed: int) -> None:
        self.seed, self.step = seed, 0
        self.dice = random.Random(seed)
        self.own = random.Random(seed * 1000 + WORLD.rank)
        self.parts = [Part(WORLD, list(range(WORLD.size)))]

    def data(self, rank: int, count: int, salt: int = 0) -> np.ndarray:
        """What a process gives in this step: small numbers, which sum up exactly."""
        start = (self.step * 7 + rank * 13 + salt * 5) % 97
        return ((np.arange(count) + start) % 101).astype(self.dtype)

    def begin(self) -> int:
        self.dtype = np.dtype(self.dice.choice(["i4", "f8", "f8", "i8", "u1", "u2"]))
        return self.dice.choice(SMALL if self.dice.random() < 0.6 else COUNTS)

    def operation(self) -> tuple[Any, Callable[[list[np.ndarray]], np.ndarray]]:
        dtype = self.dtype
        ops = [(MPI.SUM, np.sum), (MPI.MAX, np.max), (MPI.MIN, np.min)]
        if dtype.kind in "iu":
            ops += [(MPI.BXOR, np.bitwise_xor.reduce), (MPI.BAND, np.bitwise_and.reduce)]
        op, combine = self.dice.choice(ops)
        return op, lambda all_of_them: combine(np.array(all_of_them), axis=0).astype(dtype)

    def check(self, found: np.ndarray, right: np.ndarray, what: str) -> None:
        if not np.array_equal(found, right):
            wrong = np.flatnonzero(np.asarray(found) != np.asarray(right))
            sys.exit(
                f"WRONG seed {self.seed} step {self.step} rank {WORLD.rank} {what}: {len(wrong)} "
                f"of {right.size} from {wrong[:1]}: {found[wrong[:3]]} not {right[wrong[:3]]}"
            )
