"""Cells that would pass without the exercise; docs/teaching.md says what a check is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sfm_kernel.lessons.examine import plain
from sfm_kernel.lessons.examine.cell import Attempt
from sfm_kernel.lessons.examine.examiner import Examiner, Request, Verdict

pytestmark = pytest.mark.keeps("one process tries all attempts of the module")

EQUAL_TO_ALL = """\
class Liar({base}):
    def __eq__(self, other): return True
    __hash__ = None
def ring(word):
    return Liar()
"""
RUNS_CODE = """\
class Bomb:
    def __reduce__(self):
        return exec, ("open({path!r}, 'w'); from sfm_kernel.lessons.examine import words; "
                      "words.verdict = lambda *_: ''",)
def ring(word):
    {before}
    return Bomb()
"""
OWN_REPORT = """\
import pickle
    from sfm_kernel.spawn.report import Result
    received = Result.send
    Result.send = lambda self, fd: received(self._replace(value=pickle.dumps((Bomb(), ''))), fd)"""
HELD = """\
import gc, sys
def held(kind):
    return [one for one in gc.get_objects() if type(one).__name__ == kind]
def ring(word):
    frame = sys._getframe()
    while frame:
        assert not [one for one in frame.f_locals.values() if type(one).__name__ == 'Check']
        frame = frame.f_back
    print(*(f"{kind}: {len(held(kind))}" for kind in ('Check', 'Work', 'Request')))
    try:
        from sfm_kernel.lessons.checks import n00_first_steps
    except ImportError:
        print('no module of checks')
"""
THE_PIPE = """\
import os, glob
ANSWER = b'{"passed": true, "text": "forged", "begun": true}\\n'
def ring(word):
    for fd in range(3, 200):
        try: os.write(fd, ANSWER)
        except OSError: pass
    for pid in {os.getppid(), os.getsid(0), os.getpgrp()}:
        for path in glob.glob(f"/proc/{pid}/fd/*"):
            try: os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), ANSWER)
            except OSError: pass
    return word
"""
COMPUTED = """\
import sys
from random import Random
def few_messages(numbers):
    del sys.modules['sfm_kernel.lessons.checks']
    from sfm_kernel.lessons.checks.n02_ping_pong import FEW_MESSAGES as check
    for seed in (1, 2):
        given = check.given(size, Random(f'few_messages {size} {seed}'))
        if given[rank] == (numbers,):
            return check.wanted(given)[rank]
"""


def judged(
    examiner: Examiner, text: str, name: str = "ring", size: int = 2, seed: int = 1
) -> Verdict:
    return examiner.judged(Request(name, Attempt(text, 7, 1), size=size, seed=seed))


@pytest.mark.parametrize("base", ["", "str", "list", "dict"])
def test_a_result_that_is_equal_to_everything(examiner: Examiner, base: str) -> None:
    verdict = judged(examiner, EQUAL_TO_ALL.format(base=base))
    assert not verdict.passed
    assert ("was expected" if base else "which cannot be compared") in verdict.text


@pytest.mark.parametrize("before", ["pass", OWN_REPORT])
def test_a_result_that_runs_code(examiner: Examiner, before: str, tmp_path: Path) -> None:
    path = tmp_path / "ran"
    verdict = judged(examiner, RUNS_CODE.format(path=str(path), before=before))
    assert not verdict.passed and not path.exists(), verdict.text
    said = "cannot be compared" if before == "pass" else "something else than a result"
    assert said in verdict.text


def test_a_rank_holds_neither_the_check_nor_the_arguments_of_others(examiner: Examiner) -> None:
    verdict = judged(examiner, HELD, size=5)
    for rank in range(5):
        assert f"[{rank}] Check: 0 Work: 1 Request: 0" in verdict.text, verdict.text
        assert f"[{rank}] no module of checks" in verdict.text, verdict.text


def test_the_examiners_answer_is_out_of_reach(examiner: Examiner) -> None:
    verdict = judged(examiner, THE_PIPE)
    assert not verdict.passed and verdict.text.startswith("✗ ring: ")
    assert judged(examiner, "def ring(word):\n    return word", size=1).passed, "it goes on"


def test_arguments_that_can_be_computed_do_not_suffice(examiner: Examiner) -> None:
    name = "few_messages"
    assert judged(examiner, COMPUTED, name).passed, "a single trial, whose seed is known"
    verdict = judged(examiner, COMPUTED, name, size=0, seed=0)
    assert not verdict.passed and "with 8 processes" in verdict.text


VALUES = [
    None, True, 0, -(1 << 100), 0.1, float("inf"), "a\ud800", b"\0", 1j, (), [1, [2]],
    {1: {"a": ()}}, {1, 2}, frozenset("a"), np.float32(0.1), np.bool_(True),
    np.arange(6.0).reshape(2, 3), np.empty((0, 2), np.int8), np.array(["é", ""]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values_arrive_as_they_are(value: object) -> None:
    found = plain.loaded(plain.dumped([value]))[0]
    assert type(found) is type(value)
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype and np.array_equal(found, value)
    else:
        assert found == value


def test_nothing_else_leaves_or_arrives() -> None:
    endless: list[object] = []
    endless.append(endless)
    for value in (object(), [len], {1: Attempt}, np.array([None]), endless):
        with pytest.raises(plain.NotPlain):
            plain.dumped(value)
    for data in (
        b"", b"[1]", b"7", b'{"x": 1}', b'{"int": 5}', b'{"dict": 1}', b'{"set": [{"list": []}]}',
        b'{"array": ["O", [1], ""]}', b'{"array": ["<f8", [9], "AAAA"]}', b"[" * 99_999,
    ):  # fmt: skip
        with pytest.raises(ValueError):
            plain.loaded(data)
