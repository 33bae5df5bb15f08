"""Programs of MPI in new processes of a notebook; for engines see test_mpi4py.py."""

from __future__ import annotations

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

CELLS = ["%sfm start A B"]

COMM = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"


def test_a_program_runs_in_as_many_processes_as_there_are_engines(
    book: Notebook, tmp_path: Path
) -> None:
    script = tmp_path / "prog.py"
    script.write_text(COMM + "import sys; print(comm.rank, comm.allreduce(1), sys.argv[1:])")
    text = book.text(f"%sfm run {script} a 'b c'")
    assert "[0] 0 2 ['a', 'b c']" in text and "[1] 1 2 ['a', 'b c']" in text
    assert "[2]" in book.text(f"%sfm run -n 3 {script}")
    assert book.text(f"%sfm run -n 1 {script}").strip() == "0 1 []"
    assert "of 2 on" in book.text("%sfm run -m mpi4py.bench helloworld")


def test_a_run_that_has_ended_is_kept(book: Notebook, tmp_path: Path) -> None:
    script = tmp_path / "prog.py"
    script.write_text(COMM + "print('sum', comm.allreduce(1))")
    book.run(
        "import os, time; from unittest import mock\n"
        "from sfm_kernel.finished_runs import FinishedRuns\n"
        f"wish = {{'SFM_RUNS': '10', 'XDG_CACHE_HOME': {str(tmp_path)!r}}}\n"
        "wish = mock.patch.dict(os.environ, wish); wish.start()"
    ).ok()
    try:
        book.run(f"%sfm run -n 2 {script}").ok()
        found = "while not FinishedRuns().newest_first(): time.sleep(0.01)\n"
        text = book.text(found + "for run in FinishedRuns().newest_first(): print(run)")
    finally:
        book.run("wish.stop()").ok()
    assert text.count("'program': 'prog.py', 'ranks': 2") == 1 and "'end': 'done'" in text
    (record,) = (tmp_path / "sfm-kernel/runs").glob("*/record.html")
    assert "[0] sum 2\n" in record.read_text()


def test_a_file_of_the_folder_is_no_module_of_the_launcher(book: Notebook, tmp_path: Path) -> None:
    (tmp_path / "selectors.py").write_text("raise SystemExit('an impostor')")
    (tmp_path / "prog.py").write_text("import mine, sys; print(mine.answer, sys.path[0])")
    (tmp_path / "mine.py").write_text("answer = 42")
    book.run(f"import os; before = os.getcwd(); os.chdir({str(tmp_path)!r})").ok()
    try:
        assert book.text("%sfm run -n 1 prog.py").strip() == f"42 {tmp_path}"
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


def test_help(book: Notebook) -> None:
    text = book.text("%sfm help")
    assert "%sfm run -n 4 prog.py" in text and "from mpi4py import MPI" in text
    assert "how many processes" in book.text("%sfm run -h")
