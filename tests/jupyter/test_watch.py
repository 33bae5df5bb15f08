"""``%sfm watch`` and ``%%sfm --watch``, as every front end gets them."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from tests.jupyter.notebook import Notebook, wait_until_blocked

pytestmark = pytest.mark.keeps("one cluster for the whole module")

CELLS = ["%sfm start A B C"]

CROSSED = """%%sfm A,B --no-detect
send(dest='B' if rank == 0 else 'A', tag=3)
recv(src='B' if rank == 0 else 'A', tag=2)"""


def test_it_ends_when_all_engines_rest(book: Notebook) -> None:
    book.run("%%sfm C --noblock\nimport time; time.sleep(2); send(dest='home', over=1)").ok()
    shown = book.run("%sfm watch").ok()
    assert len(shown.parts) == 1, "one output, which was replaced"
    assert "as it was at" in shown.text
    assert [line.split()[2] for line in shown.text.splitlines()[2:5]] == ["idle"] * 3
    assert "running" in shown.html and "live; Stop ends it" in shown.html
    book.run("assert peek(over=1); recv(over=1)").ok()


def test_it_says_why_and_ends_with_stop(book: Notebook) -> None:
    book.run(CROSSED.replace("--no-detect", "--no-detect --noblock")).ok()
    wait_until_blocked(2)
    asked = book.send("%sfm watch")
    seen = book.wait(asked, lambda cell: "tag is 3, not 2" in cell.text)
    lines = seen.text.splitlines()
    assert "recv(src='B', tag=2)" in lines[2] and "cell" in lines[2]
    assert "Deadlock: A → B → A" in lines
    book.interrupt()
    ended = book.wait(asked)
    assert not ended.error and "as it was at" in ended.text
    book.run("%sfm restart A B").ok()


def test_for_so_many_seconds(book: Notebook) -> None:
    assert "as it was at" in book.text("%sfm watch 1")
    assert "%sfm watch takes a time" in book.run("%sfm watch now").text
    assert "%sfm watch takes a time" in book.run("%sfm watch 1 2").text


def test_while_a_cell_runs(book: Notebook) -> None:
    shown = book.run("%%sfm --watch\nimport time; time.sleep(1.5); print('done', sfm.name)").ok()
    table, *outputs = shown.parts.values()
    assert "as it was when the cell ended" in table
    assert "the cell on A, B, C" in shown.html, "the notebook waited"
    assert sorted("".join(outputs).split()) == sorted(
        [*"ABC", *["done"] * 3, "[stdout:A]", "[stdout:B]", "[stdout:C]"]
    )


def test_a_deadlock_is_ended_while_it_is_watched(book: Notebook) -> None:
    shown = book.run(CROSSED.replace("--no-detect", "--watch"))
    assert "DeadlockDetected" in shown.error
    assert "tag is 3, not 2" in shown.html and "as it was when the cell ended" in shown.text


def test_stop_while_it_is_watched(book: Notebook) -> None:
    asked = book.send(CROSSED.replace("--no-detect", "--no-detect --watch"))
    book.wait(asked, lambda cell: "tag is 3, not 2" in cell.html)
    book.interrupt()
    ended = book.wait(asked)
    assert ended.error.startswith("CellInterrupted") and "A was in recv" in ended.error
    assert "as it was when the cell ended" in ended.text
    book.run("%sfm restart A B").ok()


def test_nbconvert_keeps_the_last_state(tmp_path: Path) -> None:
    sources = ["%load_ext sfm_kernel\n%sfm start 2", "%sfm watch 1", "%sfm stop"]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(made, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    started = "".join(output.get("text", "") for output in made.cells[0].outputs)
    assert started.count("its kernel uses TCP without encryption") == 1, "nbclient starts it so"
    (shown,) = made.cells[1].outputs
    assert shown.output_type == "display_data"
    assert "as it was at" in shown.data["text/plain"]
    page, _ = HTMLExporter().from_notebook_node(made)
    assert page.count("as it was at") == 1 and "background:rgba" not in page.partition("<body")[0]
