"""The real mpi4py in engines: on their own queue, with Stop, explanations, and restarted worlds."""

from __future__ import annotations

import pytest

from tests.jupyter.notebook import Notebook, processes, wait_for

pytestmark = pytest.mark.keeps("one notebook with two engines for the whole module")

CELLS = ["%sfm start 2"]

BEGINNING = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"


def test_a_cell_has_the_real_one_on_our_library(book: Notebook) -> None:
    code = "%%sfm\n" + BEGINNING + "import mpi4py\nprint(comm.rank, comm.size, comm.allreduce(1))\n"
    code += "print('sfm_kernel' in mpi4py.__file__, MPI.Get_library_version()[:10])"
    text = book.text(code)
    assert "0 2 2" in text and "1 2 2" in text
    assert text.count("False sfm-kernel") == 2


def test_extensions_and_build_tools_find_it_on_engines(book: Notebook) -> None:
    asked = (
        "%%sfm 0\nimport ctypes, ctypes.util, shutil, mpi4py\n"
        "files = {line.split()[-1] for line in open('/proc/self/maps') if '/libmpi' in line}\n"
        "size = ctypes.c_int()\n"
        "ctypes.CDLL(*files).MPI_Comm_size(0x44000000, ctypes.byref(size))\n"
        "print(size.value, MPI.COMM_WORLD.size, ctypes.util.find_library('mpi'))\n"
        "print(shutil.which('mpicc') == mpi4py.get_config()['mpicc'])"
    )
    book.run("%%sfm 0\nfrom mpi4py import MPI").ok()
    assert "2 2 libmpi.so.12\nTrue" in book.text(asked)


def test_messages_of_mpi_and_of_sfm_stay_apart(book: Notebook) -> None:
    book.run("%%sfm 0\n" + BEGINNING + "comm.send('mpi', dest=1)\nsend(dest=1, x='sfm')").ok()
    code = "%%sfm 1\n" + BEGINNING + "print(recv().x, comm.recv())"
    assert "sfm mpi" in book.text(code)


def test_large_arrays_go_both_ways(book: Notebook) -> None:
    code = BEGINNING + "import numpy\na = numpy.full(2_000_000, comm.rank)\nb = a + 7\n"
    code += "comm.Sendrecv(a, dest=1 - comm.rank, recvbuf=b)\nprint(comm.rank, set(b.tolist()))"
    text = book.text("%%sfm\n" + code)
    assert "0 {1}" in text and "1 {0}" in text


def test_stop_ends_a_cell_that_waits_and_nothing_is_lost(book: Notebook) -> None:
    code = BEGINNING + "request = comm.irecv(source=1 - comm.rank, tag=8)\nprint('in')\n"
    message = book.send(f"%%sfm --no-detect\n{code}comm.recv(source=1 - comm.rank, tag=7)")
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    book.interrupt()
    assert book.wait(message).error.startswith("CellInterrupted: ")
    code = "comm.send('late', dest=1 - comm.rank, tag=8)\n"
    code += "print(request.wait(), comm.allreduce(1))"
    assert book.text("%%sfm\n" + code).count("late 2") == 2


@pytest.mark.parametrize("barriers", [0, 20], ids=["by messages", "at the tree"])
def test_collectives_go_on_after_stop_found_one_in_a_barrier(book: Notebook, barriers: int) -> None:
    code = f"{BEGINNING}import time\nother = comm.Dup()\n"
    code += f"for _ in range({barriers}): other.Barrier()\n"
    code += "print('in')\nif comm.rank: other.Barrier(); other.Barrier()\nelse: time.sleep(100)"
    message = book.send(f"%%sfm --no-detect\n{code}")
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    wait_for(
        lambda: "blocked in collective" in [process["state"] for process in processes()], "a wait"
    )
    book.interrupt()
    assert book.wait(message).error.startswith("CellInterrupted: ")
    code = "for _ in range(20): other.Barrier()\nprint('sum', other.allreduce(comm.rank))"
    assert book.text("%%sfm\n" + code).count("sum 1") == 2


def test_collectives_go_on_after_stop_found_one_further_than_the_other(book: Notebook) -> None:
    """The root of a broadcast waits for no process."""
    code = f"{BEGINNING}import time\nif comm.rank == 0: comm.bcast('unheard')\nprint('in')\n"
    message = book.send(f"%%sfm --no-detect\n{code}time.sleep(100)")
    book.wait(message, lambda cell: cell.text.count("in") >= 2)
    book.interrupt()
    assert book.wait(message).error.startswith("CellInterrupted: ")
    text = book.text("%%sfm\nprint(comm.bcast('heard'), comm.allreduce(1))")
    assert text.count("heard 2") == 2 and "unheard" not in text


def test_a_deadlock_is_told_with_the_program_s_own_calls(book: Notebook) -> None:
    cell = book.run("%%sfm\n" + BEGINNING + "comm.recv(source=1 - comm.rank, tag=7)")
    assert cell.error
    assert "comm.recv(source=1, tag=7)" in cell.shown and "line 4" in cell.shown
    assert book.text("%%sfm\nprint('alive', comm.allreduce(1))").count("alive 2") == 2


def test_a_failed_call_says_what_to_do(book: Notebook) -> None:
    cell = book.run("%%sfm 0\ncomm.send(1, dest=7)")
    assert "argument dest is 7" in cell.shown


def test_engines_start_no_processes(book: Notebook) -> None:
    cell = book.run("%%sfm\nMPI.COMM_WORLD.Spawn('true')")
    assert cell.error and "`%sfm scale`" in cell.shown


def test_the_world_is_made_anew_when_engines_change(book: Notebook) -> None:
    """This also holds for a communicator's copy; MPI goes on after it was finalized."""
    sums = "%%sfm\n" + BEGINNING + "print('sum', comm.allreduce(comm.rank + 1), comm.Dup().size)"
    assert book.text(sums).count("sum 3 2") == 2
    book.run("%sfm restart 1").ok()
    assert book.text(sums).count("sum 3 2") == 2
    book.run("%sfm scale 3").ok()
    assert book.text(sums).count("sum 6 3") == 3
    assert book.text("%%sfm\nMPI.Finalize()\nprint(MPI.Is_finalized())").count("True") == 3
    assert book.text(sums).count("sum 6 3") == 3


def test_a_process_that_waits_for_a_killed_engine_gets_an_error(book: Notebook) -> None:
    code = BEGINNING + "import os\nif comm.rank == 1: os._exit(1)\ncomm.recv(source=1, tag=3)"
    cell = book.run("%%sfm\n" + code)
    assert cell.error and "has ended" in cell.shown
