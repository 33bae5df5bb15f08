"""00-first-steps: a message to a neighbour, and an exchange of messages."""

from __future__ import annotations

from random import Random
from typing import Any

from sfm_kernel.lessons.checks.common import from_the_left
from sfm_kernel.lessons.examine.check import Arguments, Check

_WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibex", "jay", "kiwi", "lynx")


def a_word_each(size: int, random: Random) -> Arguments:
    """Each rank gets a different word."""
    return [(word,) for word in random.sample(_WORDS, size)]


def _of_the_partner(given: Arguments) -> list[Any]:
    words = [word for (word,) in given]
    return [words[rank ^ 1] if rank ^ 1 < len(words) else words[rank] for rank in range(len(words))]


RING = Check(
    "ring",
    "sends the word to the next process (the last to the first), returns the word that it receives",
    a_word_each,
    from_the_left,
    most=lambda size: size,
)

SWAP = Check(
    "swap",
    "exchanges words between 0 and 1, 2 and 3, …; a process without a partner returns its own word",
    a_word_each,
    _of_the_partner,
    most=lambda size: size,
)
