"""MPI in a notebook: mpi4py on engines, and programs in new processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jupyter.notebook import (
    Notebook,
    descendants,
    notebook,
    runs,
    wait_for,
)

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

COMM = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"


@pytest.fixture(scope="module")
def book() -> Iterator[Notebook]:
    with notebook("%sfm start A B") as one:
        yield one


# ---- on engines: see also test_mpi4py.py


def test_messages_of_mpi_and_of_sfm_stay_apart(book: Notebook) -> None:
    book.run("%%sfm A\n" + COMM + "comm.send('mpi', dest=1)\nsend(dest='B', x='sfm')").ok()
    code = "%%sfm B\n" + COMM + "print(recv().x, comm.recv())"
    assert "sfm mpi" in book.run(code).ok().text


def test_stop_ends_a_cell_that_waits_in_mpi(book: Notebook) -> None:
    code = COMM + "print('in')\ncomm.recv(source=1 - comm.rank, tag=7)"
    message = book.send(f"%%sfm --no-detect\n{code}")
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    book.interrupt()
    assert book.wait(message).error.startswith("CellInterrupted: ")
    code = "%%sfm\nprint('alive', comm.allreduce(1))"
    assert book.run(code).ok().text.count("alive 2") == 2


# ---- programs


def test_a_program_runs_in_as_many_processes_as_there_are_engines(
    book: Notebook, tmp_path: Path
) -> None:
    script = tmp_path / "prog.py"
    script.write_text(COMM + "import sys; print(comm.rank, comm.allreduce(1), sys.argv[1:])")
    text = book.run(f"%sfm run {script} a 'b c'").ok().text
    assert "[0] 0 2 ['a', 'b c']" in text and "[1] 1 2 ['a', 'b c']" in text
    assert "[2]" in book.run(f"%sfm run -n 3 {script}").ok().text
    assert book.run(f"%sfm run -n 1 {script}").ok().text.strip() == "0 1 []"
    assert "of 2 on" in book.run("%sfm run -m mpi4py.bench helloworld").ok().text


def test_a_file_of_the_folder_is_no_module_of_the_launcher(book: Notebook, tmp_path: Path) -> None:
    (tmp_path / "selectors.py").write_text("raise SystemExit('an impostor')")
    (tmp_path / "prog.py").write_text("import mine, sys; print(mine.answer, sys.path[0])")
    (tmp_path / "mine.py").write_text("answer = 42")
    book.run(f"import os; before = os.getcwd(); os.chdir({str(tmp_path)!r})").ok()
    try:
        assert book.run("%sfm run -n 1 prog.py").ok().text.strip() == f"42 {tmp_path}"
    finally:
        book.run("os.chdir(before)").ok()


def test_a_program_that_fails_says_its_status(book: Notebook) -> None:
    cell = book.run("%sfm run -n 2 -c 'import sys; sys.exit(3)'")
    assert cell.error == "CellFailed: the program ended with exit status 3"
    cell = book.run("%sfm run -n 2 -c 'none'")
    assert cell.error == "CellFailed: the program ended with exit status 1"
    assert cell.text.count("NameError: name 'none' is not defined") == 1
    assert "mpi.py" not in cell.shown


def test_output_of_a_program_comes_while_it_runs_and_stop_ends_it(book: Notebook) -> None:
    before = set(descendants(book.pid))
    code = COMM + "print('before')\ncomm.recv()"
    message = book.send(f"%sfm run -n 2 -c {code!r}".replace("\\n", "; "))
    book.wait(message, lambda cell: cell.text.count("before") == 2)
    ours = set(descendants(book.pid)) - before
    assert len(ours) >= 3
    book.interrupt()
    cell = book.wait(message)
    assert cell.error == "CellInterrupted: the program was stopped"
    assert "rank 0 was in" in cell.text and "rank 1 was in" in cell.text
    assert not any(map(runs, ours))


@pytest.mark.fault
def test_a_program_ends_with_the_notebook() -> None:
    with notebook("%sfm start A") as book:
        message = book.send("%sfm run -n 2 -c 'import time; print(\"in\"); time.sleep(1000)'")
        book.wait(message, lambda cell: cell.text.count("in") == 2)
        processes = descendants(book.pid)
        assert len(processes) >= 3
        book.kill()
        wait_for(lambda: not any(map(runs, processes)), "the program has ended")


# ---- usage


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("%sfm run", "%sfm run: no program"),
        ("%sfm run -n 0 prog.py", "a number from 1 to"),
        (
            "%sfm run nothing.py",
            "there is no file 'nothing.py'. For example: %sfm run -n 4 prog.py",
        ),
    ],
)
def test_errors_are_one_line(book: Notebook, code: str, words: str) -> None:
    cell = book.run(code)
    assert words in cell.text
    assert len(cell.shown.strip().splitlines()) == 1


def test_help(book: Notebook) -> None:
    text = book.run("%sfm help").ok().text
    assert "%sfm run -n 4 prog.py" in text and "from mpi4py import MPI" in text
    assert "how many processes" in book.run("%sfm run -h").ok().text
