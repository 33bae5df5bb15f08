"""06-speedes: messages whose number no node knows beforehand."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.examine.check import Arguments, Check


def _hops(size: int, random: Random) -> Arguments:
    return [(random.randint(0, 5),) for _ in range(size)]


def _received(given: Arguments) -> list[Any]:
    size = len(given)
    found = [0] * size
    for rank, (hops,) in enumerate(given):
        for hop in range(1, hops + 1):
            found[(rank + hop) % size] += 1
    return found


PASS_ON = Check(
    "pass_on",
    "sends a message that travels `hops` nodes; returns the number of messages this node received",
    _hops,
    _received,
    sizes=(1, 2, 3, 5),
    seeds=1,
)
