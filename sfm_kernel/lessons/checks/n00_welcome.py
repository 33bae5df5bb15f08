"""00-welcome: receiving from one sender, and by a condition."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.checks.n00_first_steps import a_word_each
from sfm_kernel.lessons.examine.check import Arguments, Check


def _all_at_rank_0(given: Arguments) -> list[Any]:
    return [[word for (word,) in given], *[None] * (len(given) - 1)]


def _words(size: int, random: Random) -> Arguments:
    capitals = random.randint(1, 4)
    given = []
    for rank in range(size):
        words = [f"Word{rank}{nth}" for nth in range(capitals)]
        words += [f"word{rank}{nth}" for nth in range(random.randint(1, 4))]
        random.shuffle(words)
        given.append((words, capitals))
    count = min(len(words) for words, _ in given)
    small = count - capitals
    return [(_cut(words, small), capitals) for words, _ in given]


def _cut(words: list[str], small: int) -> list[str]:
    """The words, with only ``small`` of those that begin with a small letter."""
    surplus = [word for word in words if word.islower()][small:]
    return [word for word in words if word not in surplus]


def _capitals_first(given: Arguments) -> list[Any]:
    received = [given[rank - 1][0] for rank in range(len(given))]
    return [sorted(words, key=str.islower) for words in received]  # a stable sort


COLLECT = Check(
    "collect",
    "rank 0 returns the words of all ranks in their order, its own first; the others return None",
    a_word_each,
    _all_at_rank_0,
    most=lambda size: size - 1,
)

CAPITALS_FIRST = Check(
    "capitals_first",
    "sends its words to the next process, one a message; returns the received ones, capitals first",
    _words,
    _capitals_first,
    note="A condition is a function of one attribute's value: recv(word=lambda word: …).",
)
