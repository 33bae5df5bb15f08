"""%sfm output: what engines have printed, when the page that was to show it has been reloaded."""

from __future__ import annotations

import pytest

from sfm_kernel.jupyter.outputs import MOST
from tests.jupyter.notebook import Notebook, wait_for

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

CELLS = ["%sfm start A B"]


def test_before_the_first_cell(book: Notebook) -> None:
    assert "no cell has run on the engines yet" in book.run("%sfm output").text


def test_while_a_cell_runs_and_after_it(book: Notebook) -> None:
    asked = book.send("%%sfm --noblock\nprint('before', rank)\nrecv(go=1)\nprint('after', rank)")
    book.wait(asked)
    book.below(asked, lambda cell: "before 0" in cell.text and "before 1" in cell.text)
    shown = book.text("%sfm output A")
    assert "[stdout:A, cell " in shown and ", still running]\nbefore 0\n" in shown
    assert "before 1" not in shown and "after" not in shown
    for name in "AB":
        book.run(f"send(dest='{name}', go=1)").ok()
    wait_for(lambda: "still running" not in book.text("%sfm output"), "both have ended")
    shown = book.text("%sfm output")
    assert "]\nbefore 0\nafter 0\n" in shown and "]\nbefore 1\nafter 1\n" in shown


@pytest.mark.parametrize("options", ["", "--no-stream", "--noblock --no-stream"])
def test_streams_and_errors_however_the_cell_ran(book: Notebook, options: str) -> None:
    code = "import sys\nprint('said')\nprint('warned', file=sys.stderr)\nif rank:\n    1 / 0"
    asked = book.send(f"%%sfm {options}\n{code}")
    book.wait(asked)
    book.below(asked, lambda cell: "ZeroDivisionError" in cell.shown)
    wait_for(lambda: "still running" not in book.text("%sfm output"), "both have ended")
    shown = book.text("%sfm output")
    assert shown.count("]\nsaid\n") == shown.count("]\nwarned\n") == 2
    assert "[error:B, cell " in shown and "ZeroDivisionError: division by zero" in shown
    assert "[error:A" not in shown


def test_only_the_last_cell_of_each_engine_and_its_end(book: Notebook) -> None:
    book.run("%%sfm\nprint('long ago')").ok()
    book.run(f"%%sfm A\nprint('x' * {MOST}, 'the end')").ok()
    shown = book.text("%sfm output A")
    assert f"… the last {MOST} of {MOST + 9} characters:\n" in shown
    assert shown.endswith(" the end\n") and len(shown) < MOST + 200
    assert "long ago" in book.text("%sfm output B") and "long ago" not in shown
    book.run("%%sfm A\npass").ok()
    assert "has printed nothing" in book.text("%sfm output 0"), "a rank names an engine, too"


def test_an_engine_that_has_ended_still_shows_its_last_words(book: Notebook) -> None:
    last = "print('last words', flush=True)\nimport os\nrecv(go=2)\nos._exit(3)"
    asked = book.send(f"%%sfm B --noblock\n{last}")
    book.wait(asked)
    book.below(asked, lambda cell: "last words" in cell.text)
    book.run("send(dest='B', go=2)").ok()
    book.below(asked, lambda cell: "EngineError" in cell.text)
    shown = book.text("%sfm output B")
    assert "]\nlast words\n" in shown and "ended with exit status 3" in shown
    book.run("%sfm restart B").ok()


def test_wrong_words(book: Notebook) -> None:
    assert "no engine is called C. Known: A, B" in book.run("%sfm output C").text
    book.run("%sfm scale 3").ok()
    assert "has run no cell of this notebook yet" in book.run("%sfm output 2").text
