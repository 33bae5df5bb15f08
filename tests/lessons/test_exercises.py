"""Every check passes on its solution, and says what is wrong with what students write."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfm_kernel.lessons.examine.cell import Attempt
from sfm_kernel.lessons.examine.check import checks
from sfm_kernel.lessons.examine.examiner import Examiner, Request, Verdict
from sfm_kernel.lessons.students import cleared
from tests.lessons.wrong import MISTAKES, Mistake

SOLUTIONS = Path(__file__).parents[2] / "notebooks" / "solutions"
CHECKS = checks()


def solution(name: str) -> str:
    suffix = "c" if CHECKS[name].language == "c" else "py"
    return (SOLUTIONS / f"{name}.{suffix}").read_text()


def judged(examiner: Examiner, name: str, text: str) -> Verdict:
    return examiner.judged(Request(name, Attempt(text, 7, 1, CHECKS[name].language)))


@pytest.mark.keeps("one process tries all attempts of the module")
@pytest.mark.parametrize("name", CHECKS)
def test_the_solution_passes(examiner: Examiner, name: str) -> None:
    verdict = judged(examiner, name, solution(name))
    assert verdict.passed, verdict.text
    assert verdict.text.startswith(f"✓ {name}: right with ")


@pytest.mark.keeps("one process tries all attempts of the module")
@pytest.mark.parametrize("name", CHECKS)
def test_an_untouched_exercise_is_not_solved_yet(examiner: Examiner, name: str) -> None:
    verdict = judged(examiner, name, cleared(solution(name)))
    assert not verdict.passed and not verdict.begun
    assert verdict.text.startswith(f"{name}: not solved yet: {name} still has `...` in cell 7, ")


@pytest.mark.keeps("one process tries all attempts of the module")
@pytest.mark.parametrize(
    ("name", "mistake"),
    [(name, mistake) for name, mistakes in MISTAKES.items() for mistake in mistakes],
    ids=lambda value: getattr(value, "what", value),
)
def test_a_mistake_is_told(examiner: Examiner, name: str, mistake: Mistake) -> None:
    text = mistake.text or solution(name)
    for old, new in mistake.changed:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    verdict = judged(examiner, name, text)
    assert not verdict.passed and verdict.begun
    assert verdict.text.startswith(f"✗ {name}: ")
    assert mistake.said in verdict.text.replace("\n  ", "\n"), verdict.text


def test_each_exercise_has_a_solution_and_two_mistakes() -> None:
    assert {path.stem for path in SOLUTIONS.iterdir()} == CHECKS.keys()
    assert MISTAKES.keys() == CHECKS.keys()
    assert sum(map(len, MISTAKES.values())) >= 2 * len(CHECKS)
