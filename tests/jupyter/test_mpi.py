"""MPI in a notebook: mpi4py on engines, and programs in processes of their own."""

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
WHOSE = "from sfm_kernel.mpi.launch import standin\nprint('ours', standin.installed())"


@pytest.fixture(scope="module")
def book() -> Iterator[Notebook]:
    with notebook("%sfm start A B") as one:
        yield one


# ---- on engines


def test_a_cell_with_mpi(book: Notebook) -> None:
    code = "%%sfm --mpi\n" + COMM + "print(comm.rank, comm.size, comm.allreduce(comm.rank + 1))"
    text = book.run(code).ok().text
    assert "[stdout:A] 0 2 3" in text and "[stdout:B] 1 2 3" in text


def test_messages_of_mpi_and_of_sfm_stay_apart(book: Notebook) -> None:
    book.run("%%sfm A --mpi\n" + COMM + "comm.send('mpi', dest=1)\nsend(dest='B', x='sfm')").ok()
    code = "%%sfm B --mpi\n" + COMM + "print(recv().x, comm.recv())"
    assert "sfm mpi" in book.run(code).ok().text


def test_stop_ends_a_cell_that_waits_in_mpi(book: Notebook) -> None:
    code = COMM + "print('in')\ncomm.recv(source=1 - comm.rank, tag=7)"
    message = book.send(f"%%sfm --mpi --no-detect\n{code}")
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    book.interrupt()
    assert book.wait(message).error.startswith("CellInterrupted: ")
    code = "%%sfm\nprint('alive', comm.allreduce(1))"
    assert book.run(code).ok().text.count("alive 2") == 2


def test_a_communicator_survives_cells_and_a_restart_makes_a_new_world(book: Notebook) -> None:
    book.run("%%sfm --mpi\n" + COMM + "comm.Barrier()").ok()
    book.run("%sfm mpi4py on").ok()
    book.run("%sfm restart A").ok()
    code = "%%sfm\n" + COMM + "print('sum', comm.allreduce(comm.rank + 1), comm.size)"
    assert book.run(code).ok().text.count("sum 3 2") == 2
    assert book.run(code).ok().text.count("sum 3 2") == 2


def test_the_session_has_mpi4py_or_not(book: Notebook) -> None:
    assert "gives SFM's MPI" in book.run("%sfm mpi4py on").ok().text
    assert book.run("%%sfm\n" + WHOSE).ok().text.count("ours True") == 2
    assert "gives SFM's MPI" in book.run("%sfm mpi4py").ok().text
    assert "that is installed" in book.run("%sfm mpi4py off").ok().text
    assert book.run("%%sfm\n" + WHOSE).ok().text.count("ours False") == 2
    book.run("%sfm restart B").ok()
    assert "ours False" in book.run("%%sfm B\n" + WHOSE).ok().text


def test_an_engine_that_runs_another_mpi_says_so(book: Notebook) -> None:
    book.run("%sfm mpi4py off").ok()
    book.run("%%sfm B\nimport sys, types; sys.modules['mpi4py.MPI'] = types.ModuleType('x')").ok()
    for code in ("%%sfm --mpi\n1", "%sfm mpi4py on"):
        cell = book.run(code)
        assert "on B: the real mpi4py.MPI is loaded" in cell.text
        assert "%sfm restart" in cell.text and len(cell.shown.strip().splitlines()) == 1
    book.run("%%sfm B\ndel sys.modules['mpi4py.MPI']").ok()
    assert "ours True" in book.run("%%sfm B --mpi\n" + WHOSE).ok().text


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
def test_a_session_with_mpi4py_and_a_program_end_with_the_notebook() -> None:
    with notebook("%sfm mpi4py on", "%sfm start A") as book:
        assert "ours True" in book.run("%%sfm\n" + WHOSE).ok().text  # started later, with it
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
        ("%sfm mpi4py maybe", "%sfm mpi4py on: "),
        ("%sfm mpi4yp on", "did you mean `%sfm mpi4py`?"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(book: Notebook, code: str, words: str) -> None:
    cell = book.run(code)
    assert words in cell.text
    assert len(cell.shown.strip().splitlines()) == 1


def test_help(book: Notebook) -> None:
    text = book.run("%sfm help").ok().text
    assert "%sfm run -n 4 prog.py" in text and "%sfm mpi4py on" in text and "--mpi" in text
    assert "how many processes" in book.run("%sfm run -h").ok().text
