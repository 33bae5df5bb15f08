"""08-why-does-it-hang: three wrong programs, which students mend."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.checks.common import a_number_each, from_the_left
from sfm_kernel.lessons.examine.check import Arguments, Check


def _tasks(size: int, random: Random) -> Arguments:
    tasks = [random.randint(10, 99) for _ in range(random.randint(4, 9))]
    return [(tasks,), *[(None,)] * (size - 1)]


def _done(given: Arguments) -> list[Any]:
    workers = len(given) - 1
    return [None, *(given[0][0][worker::workers] for worker in range(workers))]


def _plan(size: int, random: Random) -> Arguments:
    return [(random.choice(["left", "right", "straight on"]),), *[(None,)] * (size - 1)]


def _at_the_last(given: Arguments) -> list[Any]:
    return [*[None] * (len(given) - 1), given[0][0]]


HAND_OUT = Check(
    "hand_out",
    "rank 0 hands tasks to ranks 1, 2, … in turn, then None to each; workers return their tasks",
    _tasks,
    _done,
    sizes=(2, 3, 5),
)

NEIGHBOURS = Check(
    "neighbours",
    "sends the number to the right in a circle, and returns the number from the left",
    a_number_each,
    from_the_left,
)

STEADY = Check(
    "steady",
    "all meet in a barrier; the last rank needs rank 0's plan before that, and returns it",
    _plan,
    _at_the_last,
    sizes=(2, 3, 5),
)
