"""``%sfm check`` in a notebook: it reads cells that have run, and does not touch the engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jupyter.notebook import Notebook, descendants, wait_for

pytestmark = pytest.mark.keeps("one notebook for the module")

CELLS: list[str] = []

RING = """\
%%sfm
def ring(word):
    send(dest=(rank + 1) % size, word=word)
    return recv(src=(rank - 1) % size).word
"""


def test_the_way_of_a_student(book: Notebook) -> None:
    shown = book.text("%sfm check ring")
    assert "no cell that has run defines `ring`. Run the exercise's cell first" in shown
    book.run("%sfm start 2").ok()
    book.run("%%sfm\ndef ring(word):\n    ...").ok()
    shown = book.text("%sfm check ring")
    assert shown.startswith("ring: not solved yet: ring still has `...` in cell ")
    book.run(RING.replace("(word):", "(word)"))
    assert (
        "✗ ring: your cell has a syntax error in line 2 (cell " in book.run("%sfm check ring").text
    )
    waits = RING.replace("send(", "w = recv().word\n    send(")
    book.run(waits).ok()
    book.run("%%sfm 0\nsend(dest=1, tag='mine')").ok()
    shown = book.text("%sfm check ring")
    number = book.run("print(len(In) - 4)").text.strip()
    assert "✗ ring: with 2 processes, it hangs.\n  Deadlock: " in shown
    assert f"in cell {number}, line 3 (ring)" in shown
    book.run(RING).ok()
    assert (
        book.text("%sfm check ring -n 3") == "●●● 3 of 3 trials\n✓ ring: right with 3 processes\n"
    )
    # The engines have seen nothing of it.
    assert "tag='mine'" in book.run("%sfm queues").text
    assert "mine" in book.text("%%sfm 1\nprint(recv().tag)")
    book.run("%sfm stop").ok()
    assert book.text("%sfm check ring --seed 2 -n 2").startswith("✓ ring: ")


def test_a_failed_check_raises_under_nbgrader(book: Notebook) -> None:
    book.run("%%sfm\ndef swap(word):\n    ...")
    strict = book.run("%sfm check swap --strict")
    assert strict.error.startswith("CheckFailed: swap: not solved yet")
    assert "magics.py" not in strict.traceback
    assert not book.run("%sfm check swap").error
    book.run("import os; os.environ['NBGRADER_EXECUTION'] = 'autograde'").ok()
    assert book.run("%sfm check swap").error.startswith("CheckFailed: ")
    book.run("del os.environ['NBGRADER_EXECUTION']").ok()


def test_wrong_words_say_what_is_right(book: Notebook, tmp_path: Path) -> None:
    for words, said in {
        "rign": "no check is called 'rign'. Did you mean `ring`?",
        "ring -n": "-n needs a value",
        "ring -n 0": "-n takes a number from 1 to 64",
        "ring --fast": "does not know '--fast'. Usage: %sfm check NAME",
        "ring swap": "does not know 'swap'",
        f"mine --from {tmp_path}/no.py": "there is no file",
    }.items():
        assert said in book.run(f"%sfm check {words}").text, words
    listed = book.text("%sfm check")
    assert "ring " in listed and "far_sum " in listed


def test_a_teachers_own_check(book: Notebook, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from sfm_kernel.lessons import Check\n"
        "ONE = Check('one', 'returns 1', lambda size, random: [()] * size, lambda given: [1] * "
        "len(given), sizes=(2,))\n"
    )
    book.run("def one():\n    return rank").ok()  # without engines, a cell of the notebook will do
    shown = book.text(f"%sfm check one --from {file}")
    assert "✗ one: with 2 processes, rank 0 returned 0, and 1 was expected." in shown


def test_stop_ends_a_check_and_its_processes(book: Notebook) -> None:
    book.run("%%sfm\ndef ring(word):\n    while True:\n        pass")
    before = len(descendants(book.pid))
    asked = book.send("%sfm check ring")
    wait_for(lambda: len(descendants(book.pid)) >= before + 3, "a trial of two has begun")
    book.interrupt()
    assert "the check was interrupted" in book.wait(asked).error
    wait_for(lambda: len(descendants(book.pid)) == before, "its processes have ended")
