"""Programs on our library that another MPI's launcher has started: a world of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sfm_kernel.mpi.launch import native
from tests.c import mpich
from tests.mpi.launching import PATIENCE, mpi_worlds, run

MPIEXEC = str(Path(mpich.wrapper()).with_name("mpiexec"))

PROGRAM = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
got = comm.sendrecv(comm.rank, dest=right, source=left)
found = comm.gather((MPI.Get_library_version().split()[0], comm.rank, comm.size, got))
if found:
    print(found, flush=True)
"""
SAID = f"{[('sfm-kernel,', rank, 3, (rank - 1) % 3) for rank in range(3)]}\n"


def started(text: str) -> subprocess.CompletedProcess[str]:
    """A program in three processes of MPICH's mpiexec, with our library on its path."""
    command = [MPIEXEC, "-n", "3", sys.executable, "-c", PROGRAM + text]
    environment = os.environ | native.with_library()
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )


def test_mpiexec_inside_a_rank_starts_a_world_of_its_own() -> None:
    words = [MPIEXEC, "-n", "3", sys.executable, "-c", PROGRAM]
    text = f"import subprocess; from mpi4py import MPI; subprocess.run({words}, check=True)"
    done = run("-n", "1", "-c", text, timeout=PATIENCE)
    assert (done.stdout, done.stderr, done.returncode) == (SAID, "", 0)
    assert mpi_worlds() == []


@pytest.mark.fault
def test_a_process_that_fails_ends_the_others() -> None:
    assert started("if comm.rank == 1: comm.Abort(3)\ncomm.recv()").returncode == 3
    assert started("if comm.rank == 1: import os; os._exit(3)\ncomm.recv()").returncode != 0


def test_it_says_what_such_a_program_cannot_do() -> None:
    done = started("if comm.rank == 2: MPI.COMM_SELF.Spawn('x')")
    assert "another MPI's mpiexec has started cannot start processes" in done.stderr
    environment = os.environ | native.with_library() | {"OMPI_COMM_WORLD_SIZE": "2"}
    command = [sys.executable, "-c", PROGRAM]
    alone = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "Open MPI's launcher cannot start processes of this library" in alone.stderr
