"""09-c: two functions in C, which call MPI."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.checks.common import a_number_each, sum_for_all
from sfm_kernel.lessons.examine.check import Arguments, Check


def _limit(size: int, random: Random) -> Arguments:
    return [(random.choice([2, 3, 30, 1000, 5000]),)] * size


def _primes(given: Arguments) -> list[Any]:
    limit = given[0][0]
    count = sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, limit))
    return [count, *[0] * (len(given) - 1)]


TOKEN = Check(
    "token",
    "sends all numbers once round the circle; each process returns their sum",
    a_number_each,
    sum_for_all,
    sizes=(1, 2, 3, 5),
    seeds=1,
    language="c",
    signature="long token(long number)",
)

PRIMES = Check(
    "primes",
    "rank 0 returns the number of primes below the limit, others 0; each rank counts its share",
    _limit,
    _primes,
    sizes=(1, 2, 3),
    seeds=1,
    language="c",
    signature="int primes(int limit)",
)
