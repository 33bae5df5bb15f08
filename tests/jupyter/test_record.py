"""``%sfm record``: the file that a student hands in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jupyter.notebook import Notebook
from tests.observe.test_record import Reader

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

CELLS = ["%sfm start A B"]

TALK = "if rank == 0: send(dest='B', tag=1)\nelse: recv(tag=1)"
HANG = "recv(src='BA'[rank], tag=2)"


def test_the_last_run_with_its_cells(book: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    book.run("private = 'what is not of the world'")
    book.run(f"%%sfm\n{TALK}").ok()
    text = book.text(f'%sfm record {path} --title "Exercise 3" --name=Ada')
    assert text.startswith(f"{path}: ") and "without Jupyter" in text
    shown = Reader(path)
    assert "Exercise 3" in shown.text and "Ada" in shown.text
    assert "%%sfm\n" in shown.text and TALK.splitlines()[1] in shown.text
    assert "private" not in path.read_text()
    flights = shown.data["timeline"]["flights"]
    assert len(flights) == 1
    (listing,) = shown.data["listings"]
    assert listing.startswith("cell ")
    assert {"cpu", "cores", "world"} <= {text.strip() for text in shown.texts("dt")}


def test_a_cell_that_only_computes_is_shown(book: Notebook, tmp_path: Path) -> None:
    book.run("%%sfm\nanswer = 6 * 7").ok()
    book.run(f"%sfm record {tmp_path / 'run.html'}").ok()
    assert "answer = 6 * 7" in Reader(tmp_path / "run.html").text


def test_one_cell_with_what_had_hung(book: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    cell = book.run(f"%%sfm --record {path}\n{HANG}")
    assert cell.error.startswith("CellFailed: on A, B: DeadlockDetected") and str(path) in cell.text
    shown = Reader(path)
    assert "What had hung before" in shown.text and "Deadlock: A → B → A." in shown.text
    links = [link["href"] for link in shown.all("a")]
    assert links and set(links) == {"#code-0-2"}
    book.run(f"%%sfm\n{TALK}").ok()
    book.run(f"%sfm record {path}").ok()
    assert "What had hung before" not in Reader(path).text


def test_one_cell_is_followed_from_its_begin(book: Notebook, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    code = "import time\nfor n in range(3000):\n    send(dest='BA'[rank], n=n)\n    recv(n=n)"
    book.run(f"%%sfm --record {path}\n{code}\n    if n % 100 == 0: time.sleep(0.1)").ok()
    followed = len(Reader(path).data["timeline"]["flights"])
    book.run(f"%sfm record {path}").ok()
    assert followed > len(Reader(path).data["timeline"]["flights"])


def test_wrong_words(book: Notebook, tmp_path: Path) -> None:
    for words, said in {
        "": "takes one file: `%sfm record run.html`",
        "a.html b.html": "takes one file",
        "a.html --title": "--title needs a value",
        "a.json": "writes HTML",
        f"{tmp_path}/no/a.html": "was not written: No such file",
        f"{'a' * 5000}.html": "(5,005 characters) was not written: File name too long",
    }.items():
        assert said in book.run(f"%sfm record {words}").text
    ran = book.run("%%sfm --record a.json\nran = 1").text
    assert "writes HTML" in ran and "NameError" in book.run("%%sfm\nran").traceback
    assert "leave --noblock" in book.run("%%sfm --noblock --record a.html\nran = 1").text
    assert list(tmp_path.iterdir()) == []
