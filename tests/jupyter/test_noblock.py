"""%%sfm --noblock: the engines' outputs come later, and are shown below that cell."""

from __future__ import annotations

import pytest

from tests.jupyter.notebook import Notebook, notebook, wait_until_blocked

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

CELLS = ["%sfm start A B"]


def test_output_and_error_stand_below_their_cell_when_they_come(book: Notebook) -> None:
    message = book.send("%%sfm --noblock --out later\nprint('got', recv(go=1).go)\n1 / 0")
    assert "pending" in book.wait(message).text
    for name in "AB":
        between = book.run(f"send(dest='{name}', go=1)\nprint('sent')").ok()
        assert between.text.strip() == "sent"
    failed = "ZeroDivisionError: division by zero"
    cell = book.below(message, lambda cell: failed in cell.text)
    assert "[stdout:A] got 1" in cell.text and "[stdout:B] got 1" in cell.text
    assert "on A, B:\n" in cell.text and cell.text.count(failed) == 1
    assert "----> 3 1 / 0" in cell.text, "the traceback, as of a cell that blocks"
    asked = book.run("later.get()")
    assert asked.shown.strip() == f"CompositeError: on A, B: {failed}", "once is enough"
    assert cell.text.count(failed) == 1


def test_results_and_displays_come_as_well(book: Notebook) -> None:
    message = book.send(
        "%%sfm A --noblock\nfrom IPython.display import HTML, display\nrecv(go=2)\n"
        "display(HTML('<b>5</b>'))\n40 + 2"
    )
    book.wait(message)
    book.run("send(dest='A', go=2)").ok()
    cell = book.below(message, lambda cell: "Out[A:" in cell.text and "<b>5</b>" in cell.html)
    assert ": 42" in cell.text


def test_without_a_stream_only_the_error_comes(book: Notebook) -> None:
    message = book.send("%%sfm A --noblock --no-stream --out later\nprint('quiet')\n1 / 0")
    book.wait(message)
    cell = book.below(message, lambda cell: "ZeroDivisionError: division" in cell.text)
    assert "[stdout:A]" not in cell.text
    assert book.text("later.wait(); later.display_outputs()").split() == ["[stdout:A]", "quiet"]


def test_an_engine_that_dies_is_told_below_the_cell(book: Notebook) -> None:
    message = book.send("%%sfm B --noblock --out later\nimport os\nrecv(go=3)\nos._exit(1)")
    book.wait(message)
    book.run("send(dest='B', go=3)").ok()
    error = "EngineError: it ended with exit status 1; `%sfm restart B` starts it again"
    cell = book.below(message, lambda cell: error in cell.text)
    assert cell.text.count("EngineError") == 1
    asked = book.run("later.get()").shown
    assert asked.strip() == f"CompositeError: on B: {error}"
    book.run("%sfm restart B").ok()


def test_nothing_hangs_when_the_engines_or_the_kernel_end_meanwhile() -> None:
    with notebook("%sfm start 1") as book:
        book.wait(book.send("%%sfm --noblock --out later\nrecv(never=1)"))
        wait_until_blocked(1)
        book.run("%sfm stop").ok()
        error = book.run("later.get()").shown.strip()
        assert error.startswith("WorldGone: this cell's engines were stopped") and "\n" not in error
        book.run("%sfm start 1").ok()
        book.wait(book.send("%%sfm --noblock --out later\nrecv(never=1)"))
        wait_until_blocked(1)
        book.restart(now=False)
        book.run("%sfm start 1").ok()
        assert "1 engine" in book.text("%sfm start 1")
