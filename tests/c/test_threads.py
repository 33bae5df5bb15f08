"""MPI_THREAD_MULTIPLE under load: a program that looks at every byte, while others want cores."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sfm_kernel.c import LIBMPI
from tests.c.building import PROGRAMS
from tests.c.test_messages import NO_REACH
from tests.conftest import LONG, Spawn
from tests.mpi.launching import LAUNCHER, mpi_worlds, run

SOURCE = str(PROGRAMS.parent / "checks" / "threads.c")
TIMES, ROUNDS = (40, "5000") if LONG else (1, "700")

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(not Path(LIBMPI).exists(), reason="libmpi.so.12 was not built"),
    pytest.mark.timeout(7200 if LONG else 600),
]


@pytest.fixture(autouse=True)
def _busy(spawn: Spawn) -> None:
    """Something else wants the cores."""
    for _ in range(len(os.sched_getaffinity(0)) + 1 if LONG else 1):
        spawn("while True: pass")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_threads_of_all_ranks(size: int) -> None:
    for _ in range(TIMES):
        done = run("--fast", "-n", str(size), SOURCE, ROUNDS)
        assert (done.stdout, done.stderr) == ("all threads are right\n", "")
        assert done.returncode == 0
    assert mpi_worlds() == []


def test_threads_where_the_kernel_lets_nobody_reach_anothers_memory() -> None:
    words = [sys.executable, "-c", NO_REACH, *LAUNCHER, "--fast", "-n", "3", SOURCE, ROUNDS]
    for _ in range(TIMES):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == ("all threads are right\n", "")
