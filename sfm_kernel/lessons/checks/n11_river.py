"""11-river: MapReduce's shuffle, with send and recv."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from sfm_kernel.lessons.examine.check import Arguments, Check

_WORDS = ("a", "an", "oak", "pine", "birch", "willow", "juniper", "sycamore", "jacaranda")


def _texts(size: int, random: Random) -> Arguments:
    return [(random.choices(_WORDS, k=random.randint(0, 12)),) for _ in range(size)]


def _counted(given: Arguments) -> list[Any]:
    size, counts = len(given), Counter(word for (words,) in given for word in words)
    return [{w: n for w, n in counts.items() if len(w) % size == rank} for rank in range(size)]


SHUFFLE = Check(
    "shuffle",
    "counts the words of all ranks; rank n % size counts the words of n letters",
    _texts,
    _counted,
    most=lambda size: size * (size - 1),
)
