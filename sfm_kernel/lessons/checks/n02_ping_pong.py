"""02-ping-pong: a number that goes back and forth, and a sum with few messages."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.examine.check import Arguments, Check

_ROUNDS = 10


def _steps(size: int, random: Random) -> Arguments:
    return [(_ROUNDS, random.randint(2, 9) if rank == 1 else 0) for rank in range(size)]


def _grown(given: Arguments) -> list[Any]:
    return [_ROUNDS * given[1][1], *[None] * (len(given) - 1)]


def _numbers(size: int, random: Random) -> Arguments:
    return [([random.randint(-99, 99) for _ in range(1000)],) for _ in range(size)]


def _sum_at_rank_0(given: Arguments) -> list[Any]:
    return [sum(sum(numbers) for (numbers,) in given), *[None] * (len(given) - 1)]


PINGPONG = Check(
    "pingpong",
    "0 sends a number to 1, which adds its step and sends it back, `rounds` times; 0 returns it",
    _steps,
    _grown,
    sizes=(2, 3, 5),
    most=lambda size: 2 * _ROUNDS,
)

FEW_MESSAGES = Check(
    "few_messages",
    "rank 0 returns the sum of all ranks' 1000 numbers; others None. At most one message from each",
    _numbers,
    _sum_at_rank_0,
    most=lambda size: size - 1,
)
