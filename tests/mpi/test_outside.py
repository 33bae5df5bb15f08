"""Ranks that are in no MPI call: observers say what they do, and in which line."""

from __future__ import annotations

import contextlib
import re
import signal
from pathlib import Path

from sfm_kernel.observe import explain
from tests.c.building import needs_cc
from tests.mpi.launching import launched
from tests.waiting import wait_until

PYTHON = """
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    input()
elif comm.rank == 1:
    time.sleep(1000)
while comm.rank == 2:
    sum(range(1000))
comm.bcast(None)
"""
C = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, n = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) scanf("%d", &n);
    if (rank == 1) sleep(1000);
    while (rank == 2) ((volatile int *)&n)[0]++;
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
}
"""
DO = ("waits for input", "sleeps", "computes")


def said(program: Path, root: Path, *lines: int) -> list[str]:
    """What is said of the first three ranks, once each does what it should, in its line if known.

    A rank that comes there may be seen a line before, while it waits for its GIL.
    """
    found: list[str] = []

    def is_said() -> bool:
        with contextlib.suppress(FileNotFoundError, StopIteration):
            folder = next(root.glob(f"mpi-{launcher.pid}-*"))
            found[:] = [judged["text"] for judged in explain(str(folder))["processes"][:3]]
        do_so = map(str.startswith, found, map("{} {}".format, range(3), DO))
        at = [f", line {line}" in text for text, line in zip(found, lines, strict=False)]
        return len(found) == 3 and all(do_so) and all(at)

    with launched("-n", "4", str(program)) as launcher:  # whose stdin stays open
        wait_until(is_said)
        launcher.send_signal(signal.SIGTERM)
        launcher.wait()
    return found


def test_python(tmp_path: Path, sfm_dir: Path) -> None:
    program = tmp_path / "prog.py"
    program.write_text(PYTHON)
    lines = [
        re.findall(r"in prog\.py, line (\d+)", text) for text in said(program, sfm_dir, 6, 8, 10)
    ]
    assert lines == [["6"], ["8"], ["10"]]


@needs_cc
def test_c(tmp_path: Path, sfm_dir: Path) -> None:
    program = tmp_path / "prog.c"
    program.write_text(C)
    lines = [re.findall(r"in prog\.c, line (\d+)", text) for text in said(program, sfm_dir, 10, 11)]
    assert lines[:2] == [["10"], ["11"]]
