"""Collective calls that differ are told by their names, with what each process has given."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.mpi.launching import run

MPI = "from mpi4py import MPI; import numpy as np; comm = MPI.COMM_WORLD; rank = comm.rank\n"


def test_calls_that_differ_are_refused_by_name(tmp_path: Path) -> None:
    """Those that make communicators, files and windows, and roots between two groups."""
    text = f"""
name, modes = {str(tmp_path / "file")!r}, MPI.MODE_RDWR | MPI.MODE_CREATE
between = MPI.COMM_SELF.Create_intercomm(0, comm, 1 - rank)
comms = [comm.Dup() for _ in range(4)]
def ask(first, other):
    try:
        (other if rank else first)()
    except MPI.Exception as error:
        print(error)
    comm.sendrecv(None, 1 - rank, source=1 - rank)

ask(lambda: comms[0].Dup(), lambda: comms[0].Split(0))
ask(lambda: comms[1].bcast(0), lambda: comms[1].Create_cart([2]))
ask(lambda: comms[2].bcast(0), lambda: MPI.File.Open(comms[2], name, modes))
ask(lambda: comms[3].bcast(0), lambda: MPI.Win.Allocate(8, comm=comms[3]))
ask(lambda: between.Bcast(np.zeros(2), root=MPI.ROOT), lambda: between.Scatter(None, np.zeros(2)))
"""
    done = run("-n", "2", "-c", MPI + text)
    found = re.findall(
        r"process 0 .* calls (.*) in .*, line \d+ where this one calls (.*): all", done.stdout
    )
    assert found == [
        ("MPI_Comm_dup", "comms[0].Split"),
        ("bcast(root=0)", "comms[1].Create_cart"),
        ("bcast(root=0)", "MPI.File.Open"),
        ("bcast(root=0)", "MPI.Win.Allocate"),
        ("MPI_Bcast(root=MPI.ROOT)", "between.Scatter(root=0)"),
    ], done.stdout + done.stderr


OPEN = "file = MPI.File.Open(comm, {name!r}, MPI.MODE_RDWR | MPI.MODE_CREATE)\n"
ALONE = """\
if rank == 0: file.Write_all(np.zeros(1))
comm.Barrier()
"""
OTHER = """\
if rank == 0: file.Read_all(np.zeros(1))
else: file.Write_all(np.zeros(1))
file.Close()
"""
SPLIT = """\
file.Write_at_all_begin(rank, np.zeros(1))
if rank: file.Write_at_all_end(np.zeros(1))
file.Close()
"""
GROUP = "if rank == 0: comm.Create_group(comm.group, tag=5)\n"
STARTED = """\
request = comm.Bcast_init(np.zeros(1))
if rank == 0:
    request.Start()
    request.Wait()
request.Free()
"""
ROOTS = """\
between = MPI.COMM_SELF.Create_intercomm(0, comm, 1 - rank)
between.Gather(np.zeros(1), None)
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            ALONE,
            r"has made 1 collective calls? .*file.Write_all in .*line 2, and process 1 .* made 0",
        ),
        (OTHER, r"the last of which is file.Read_all .* process 1 .* ends with MPI_File_write_all"),
        (SPLIT, r"file.Write_at_all_begin in .*line 2 is not ended by MPI_File_write_at_all_end"),
        (GROUP, r"has called MPI_Comm_create_group in .*: all processes of the group call it"),
        (STARTED, r"has not so often started comm.Bcast_init\(root=0\)"),
        (ROOTS, r"Gather\(root=0\) .* between.Gather\(root=0\) .* the root itself gives MPI.ROOT"),
    ],
)
def test_what_no_call_has_waited_for_is_told_at_the_end(
    text: str, says: str, tmp_path: Path
) -> None:
    opened = OPEN.format(name=str(tmp_path / "file")) if "file." in text else ""
    done = run("-n", "2", "-c", MPI.rstrip() + "; " + (opened or "pass\n") + text)
    assert re.search(says, done.stderr) and done.returncode == 1, done.stderr


def test_files_of_other_names_are_named(tmp_path: Path) -> None:
    text = f"MPI.File.Open(comm, f'{tmp_path}/{{rank}}', MPI.MODE_RDWR | MPI.MODE_CREATE)"
    done = run("-n", "2", "-c", MPI + text)
    assert re.search("process [01] gives another name than .*/[01]", done.stderr), done.stderr


def test_a_barrier_at_exit_beside_the_end_is_told() -> None:
    done = run("-n", "2", "-c", MPI + "import atexit\nif rank == 0: atexit.register(comm.Barrier)")
    assert "rank 1, in MPI_Finalize: process 0 of MPI_COMM_WORLD calls MPI_Barrier" in done.stderr
    assert "without MPI_Finalize" not in done.stderr and done.returncode == 1
