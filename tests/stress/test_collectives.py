"""Random programs of collectives, between processes: every member gets what it should."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, Group
from sfm_kernel.collectives import ALGORITHMS

pytestmark = pytest.mark.timeout(1800)


def program(sfm: Endpoint, seed: int, count: int) -> None:
    """``count`` random calls, the same on all; each result is compared with the one it must be."""
    shared, dice = random.Random(seed), random.Random(f"{seed} {sfm.rank}")
    groups = [Group(sfm)]
    half = [rank for rank in range(sfm.size) if rank % 2 == sfm.rank % 2]
    groups.append(Group(sfm, half[::-1]))
    for number in range(count):
        group = groups[shared.random() < 0.3]
        call = shared.choice(list(ALGORITHMS))
        names = [None, *ALGORITHMS[call]]
        if not group.is_local:
            names.remove("flags") if "flags" in names else None
        algorithm = shared.choice(names)
        length = shared.choice([1, 3, 100, 250, 5_000, 50_000])
        root = shared.randrange(sfm.size // 2)  # a place in the smaller half, too
        places = list(range(group.size))
        values = [np.arange(length) * (place + 1) + number for place in places]
        value = values[group.rank]
        if dice.random() < 0.05:
            time.sleep(dice.random() / 200)
        if call == "barrier":
            group.barrier(algorithm=algorithm)
        elif call == "bcast":
            got = group.bcast(value if group.rank == root else None, root, algorithm=algorithm)
            assert np.array_equal(got, values[root])
        elif call in ("allreduce", "reduce", "scan"):
            arguments = (root,) if call == "reduce" else ()
            got = getattr(group, call)(value, np.add, *arguments, algorithm=algorithm)
            upto = group.rank + 1 if call == "scan" else group.size
            if call != "reduce" or group.rank == root:
                assert np.array_equal(got, sum(values[:upto])), (call, algorithm, length)
            number_of = group.allreduce(group.rank + number)
            assert number_of == sum(places) + number * group.size
        elif call == "scatter":
            given = values if group.rank == root else None
            assert np.array_equal(group.scatter(given, root, algorithm=algorithm), value)
        elif call == "alltoall":
            given = [(group.rank, place, number) for place in places]
            got = group.alltoall(given, algorithm=algorithm)
            assert got == [(place, group.rank, number) for place in places]
        else:
            arguments = (root,) if call == "gather" else ()
            got = getattr(group, call)((group.rank, "x" * (length % 5_000)), *arguments)
            if got is not None:
                assert got == [(place, "x" * (length % 5_000)) for place in places]


@pytest.mark.parametrize("size", [4, 7])
def test_random_programs(kind: str, size: int, effort: int) -> None:
    for seed in range(effort):
        sfm_kernel.run(program, size, seed, 150, timeout=600)


def test_many_short_rounds(kind: str, effort: int) -> None:
    """Barriers and reductions as fast as they go, with more processes than cores."""

    def rounds(sfm: Endpoint, count: int) -> int:
        group, total = Group(sfm), 0
        for number in range(count):
            group.barrier()
            total += group.allreduce(number + sfm.rank)
        return total

    count = (3000 if kind == "shm" else 100) * effort
    sizes = 6
    expected = sum(number * sizes + sum(range(sizes)) for number in range(count))
    assert sfm_kernel.run(rounds, sizes, count, timeout=600) == [expected] * sizes
