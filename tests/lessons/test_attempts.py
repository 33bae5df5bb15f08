"""The student's cell: which one is taken, what of it is run, and what is said if it cannot be."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from sfm_kernel import directory
from sfm_kernel.lessons import CheckFailed, same
from sfm_kernel.lessons.examine.cell import Attempt, Unready, definitions, find, ready
from sfm_kernel.lessons.examine.check import checks, of_file
from sfm_kernel.lessons.examine.check import find as find_check
from sfm_kernel.lessons.examine.examiner import Examiner, Request, Verdict
from tests.waiting import wait_until

GOOD = """\
def ring(word):
    send(dest=(rank + 1) % size, word=word)
    return recv(src=(rank - 1) % size).word
"""

OWN = """\
from sfm_kernel.lessons import Check

TWICE = Check(
    "twice",
    "returns twice its number",
    given=lambda size, random: [(random.randint(1, 9),) for _ in range(size)],
    wanted=lambda given: [2 * number for (number,) in given],
    sizes=(2,),
    seconds=1.5,
)
"""


def judged(examiner: Examiner, text: str, name: str = "ring", file: str = "") -> Verdict:
    return examiner.judged(Request(name, Attempt(text, 7, 1), file, size=2, seed=1))


def test_the_last_cell_that_defines_it_is_taken() -> None:
    cells = [
        (1, f"%%sfm\n{GOOD}"),
        (2, f"%%sfm --noblock\n{GOOD}# better"),
        (3, "%%writefile ring.py\ndef ring(word): pass"),
        (4, "%%sfm\nprint(ring('x'))\n# def ring"),
    ]
    found = find("ring", cells)
    assert found == Attempt(f"{GOOD}# better", 2, 1)
    assert find("rin", cells) is None
    assert find("ring", [(5, GOOD)]) == Attempt(GOOD, 5, 0)
    c = "%%sfm c\nlong token(long n)\n{\n    return n;\n}"
    assert find("token", [(1, c), (2, "%%sfm c\nint main(void) { token(3); }")]) == Attempt(
        c.partition("\n")[2], 1, 1, "c"
    )
    unclosed = c.removesuffix("}")
    assert find("token", [(1, unclosed)]) is not None


def test_definitions_are_kept_and_what_tries_them_is_not() -> None:
    text = (
        "import math\nN = math.sqrt(4)\nx = ring('a')\nm = sfm.recv()\n"
        f"{GOOD}\nprint(ring('b'))\nif rank == 0:\n    send(dest=1)\n"
    )
    kept = [type(node).__name__ for node in definitions(text).body]
    assert kept == ["Import", "Assign", "FunctionDef"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def ring(word)\n    return word", "a syntax error in line 2 (cell 7): expected ':'"),
        ("def ring(word):\n    ...", "not solved yet: ring still has `...` in cell 7, line 3"),
        ("def ring(w):\n    raise NotImplementedError()", "not solved yet: "),
        ("if True:\n    def ring(w):\n        return w", "is inside another block"),
        ("async def ring(w):\n    return w", "remove `async`"),
        ("def ring(w):\n    return w\n\tx", "a syntax error in line 4"),
    ],
)
def test_an_attempt_that_cannot_be_tried_is_refused_at_once(text: str, said: str) -> None:
    with pytest.raises(Unready) as problem:
        ready(Attempt(text, 7, 1), "ring")
    assert said in str(problem.value)


def test_lines_of_ipython_do_no_harm() -> None:
    text = f"%time x = 3\n{GOOD}\n!ls"
    assert ready(Attempt(text, 7, 1), "ring").startswith("pass\ndef ring")
    modulo = "def ring(w):\n    return (w\n    % 3)"
    assert ready(Attempt(modulo, 7, 1), "ring") == modulo


@pytest.mark.keeps("one process tries all attempts of the module")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD, "✓ ring: right with 2 processes"),
        (f"print(recv())\n{GOOD}", "✓ ring: "),
        (GOOD.replace("send", "prin(2)\n    send"), "NameError in cell 7, line 3, `prin(2)`: name"),
        (GOOD.replace("send", "exit()\n    send"), "ended itself in cell 7, line 3, `exit()`"),
        (GOOD.replace("send", "input()\n    send"), "input() does not work in a check"),
        (GOOD.replace("send", "print(word * 9999)\n    send").replace("+ 1", ""), "(more was pri"),
        (GOOD.replace("(word)", "(word, tag)"), "ring() missing 1 required positional argument"),
        (GOOD.replace("return", "return lambda:"), "<locals>.<lambda> at"),
        ("import os\n" + GOOD.replace("send", "os._exit(3)\n    send"), "exit status 3"),
        (GOOD.replace("send", "x = bytearray(1 << 32)\n    send"), "raised MemoryError in cell 7"),
        (GOOD.replace("return", "yield"), "which cannot be compared with anything"),
    ],
)
def test_the_verdicts_on_attempts_of_students(examiner: Examiner, text: str, said: str) -> None:
    verdict = judged(examiner, text)
    assert said in verdict.text, verdict.text
    assert verdict.passed == said.startswith("✓")
    assert verdict.hangs == (", it hangs.\n" in verdict.text)


@pytest.mark.keeps("one process tries all attempts of the module")
def test_an_endless_loop_ends_and_its_line_is_told(examiner: Examiner, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    text = "def twice(number):\n    while rank == 1:\n        number += 1\n    return 2 * number"
    verdict = judged(examiner, text, "twice", str(file))
    assert "✗ twice: with 2 processes, it had not ended after 1.5 s." in verdict.text
    assert "1 computes in cell 7, line " in verdict.text and verdict.hangs
    assert judged(examiner, "def twice(n):\n    return 2 * n", "twice", str(file)).passed
    polls = "def twice(n):\n    while not peek(tag=n):\n        pass"
    assert "polls peek(tag=" in judged(examiner, polls, "twice", str(file)).text


def test_a_teachers_file(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    assert list(of_file(str(file))) == ["twice"]
    for text, said in {
        "import nothing_like_it": "No module named 'nothing_like_it'",
        "def f(:": "SyntaxError",
        "x = 1": "has no check",
        OWN.replace('"twice",', '"two times",', 1): "is named like its function",
        OWN.replace("(2,)", "(0,)"): "sizes are numbers of processes",
    }.items():
        file.write_text(text)
        with pytest.raises(CheckFailed, match=f"{file}.*{said}"):
            of_file(str(file))
    with pytest.raises(CheckFailed, match="there is no file"):
        of_file(str(tmp_path / "none.py"))


@pytest.mark.keeps("one process tries all attempts of the module")
def test_the_check_of_the_documentation(examiner: Examiner, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/teaching.md").read_text()
    file = tmp_path / "checks.py"
    file.write_text(text.split("```python\n")[1].split("```")[0])
    total = (
        "def total(number):\n"
        "    if rank:\n        send(dest=0, n=number)\n        return recv(src=0).total\n"
        "    number += sum(recv().n for _ in range(1, size))\n"
        "    for r in range(1, size):\n        send(dest=r, total=number)\n"
        "    return number\n"
    )
    assert judged(examiner, total, "total", str(file)).passed
    wrong = judged(examiner, "def total(number):\n    return number", "total", str(file))
    assert "One process adds, and tells the others." in wrong.text


def test_an_unknown_name_is_told_with_those_that_are_like_it() -> None:
    with pytest.raises(CheckFailed, match=r"'rign'. Did you mean `ring`.*There are: ring, swap, "):
        find_check("rign", checks())
    with pytest.raises(CheckFailed, match=r"no check is called 'xyz'\. There are: "):
        find_check("xyz", checks())


def test_the_same() -> None:
    assert same([1, 2.0], (1, 2.0 * (1 + 1e-12))) and not same([1, 2], [1, 2, 3])
    assert not same(0.1 + 0.2, 0.3, exact=True) and same(0.1 + 0.2, 0.3)
    assert same(np.ones(3), [1.0, 1.0, 1.0]) and not same(np.ones(3), np.ones(4))
    assert not same(None, np.ones(1)) and not same("1", 1.0) and not same(None, 0)
    assert same({"a": 1}, {"a": 1}) and not same({"a": 1}, {"b": 1})


def test_a_stopped_examiner_leaves_nothing() -> None:
    before = set(directory.worlds())
    with Examiner() as stopped:
        text = "def ring(word):\n    while True:\n        pass"
        asked = threading.Thread(target=_ask, args=(stopped, text))
        asked.start()
        wait_until(lambda: set(directory.worlds()) - before)
    asked.join()
    assert set(directory.worlds()) == before


def _ask(examiner: Examiner, text: str) -> None:
    with pytest.raises(CheckFailed, match="ended with exit status"):
        judged(examiner, text)
