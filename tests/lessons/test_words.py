"""The sentences that report a trial."""

from __future__ import annotations

import numpy as np

from sfm_kernel.lessons import Check
from sfm_kernel.lessons.examine import words
from sfm_kernel.lessons.examine.trial import Trial

CHECK = Check(
    "f",
    "returns its number",
    given=lambda size, random: [(rank,) for rank in range(size)],
    wanted=lambda given: [number for (number,) in given],
    note="Look at the end.",
)


def trial(size: int = 3, **about: object) -> Trial:
    made = Trial(size, 2, [(rank,) for rank in range(size)], values=list(range(size)))
    for name, value in about.items():
        setattr(made, name, value)
    return made


def test_nothing_is_said_of_what_is_right() -> None:
    assert words.verdict(CHECK, trial()) == ""
    assert words.right(CHECK, [1]) == "✓ f: right with 1 process"
    assert words.right(CHECK, [1, 2, 5]) == "✓ f: right with 1, 2 and 5 processes"


def test_a_wrong_result_with_all_that_is_known_of_it() -> None:
    found = trial(6, values=[0, 1, 2, 3, 4, None], late=4, printed=["", "a\nb", "", "", "", ""])
    text = words.wrong(CHECK, found, [2, 3], words.verdict(CHECK, found))
    assert text.splitlines() == [
        "✗ f: with 6 processes (right with 2 and 3), rank 5 returned None, and 5 was expected. "
        "Does every branch of f end with a `return`?",
        "  It was called as f(0) on rank 0, f(1) on rank 1, f(2) on rank 2, f(3) on rank 3, "
        "f(4) on rank 4, ….",
        "  Rank 4 began 30 ms after the others.",
        "  It printed:",
        "  [1] a",
        "  [1] b",
        "  Look at the end.",
        "  To repeat only this trial: %sfm check f -n 6 --seed 2",
    ]


def test_messages_that_were_left_or_were_too_many() -> None:
    left = [f"from 0 to 1 (n={n})" for n in range(5)]
    assert words.verdict(CHECK, trial(left=left)).startswith(
        "the results are right, but 5 messages were never received: from 0 to 1 (n=0); "
        "from 0 to 1 (n=1); from 0 to 1 (n=2); …."
    )
    few = Check("f", "", CHECK.given, CHECK.wanted, most=lambda size: 1)
    assert "sent 3 messages in all; 1 is enough." in words.verdict(few, trial(sent=3))
    assert words.verdict(few, trial(sent=1)) == ""


def test_values_are_shortened() -> None:
    assert words.short([1, "a"]) == "[1, 'a']"
    assert words.short(np.float64(0.5)) == "0.5"
    assert words.short(np.arange(3.0)) == "[0., 1., 2.]"
    assert words.short(np.ones((40, 30))) == "<array of 40 × 30 float64>"
    assert len(words.short(list(range(10_000)))) < 150
    assert len(words.short(dict.fromkeys(range(99), "x" * 999))) < 150
