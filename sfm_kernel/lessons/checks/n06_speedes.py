"""06-speedes: messages of which nobody knows how many there will be."""

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
    "sends a message that goes `hops` nodes on; returns how many messages this node has received",
    _hops,
    _received,
    sizes=(1, 2, 3, 5),
    seeds=1,
)
