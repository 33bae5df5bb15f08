"""Ranks that do the same for ever: variables of Python are compared, and calls of C are told."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfm_kernel.observe import DeadlockMonitor, deadlocks, explain
from sfm_kernel.observe.explain import repetition, rounds
from tests.c.building import needs_cc
from tests.mpi.launching import launched
from tests.waiting import wait_until

PYTHON = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
peer = 1 - comm.rank
comm.send("after you", dest=peer)
while True:
    if comm.recv(source=peer) == "thanks":
        break
    comm.send("after you", dest=peer)
"""
C = """
#include <mpi.h>
int main(int argc, char **argv)
{
    int rank, x = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (long rounds = 0; rounds < 1L << 60; rounds++) {
        MPI_Send(&x, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD);
        MPI_Recv(&x, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}
"""
LASTING = 0.4


def looked_at(program: Path, root: Path, look: Callable[[str], Any]) -> Any:
    """What ``look`` finds in the program's world, called until it finds something."""
    with launched("-n", "2", str(program)) as launcher:
        world = wait_until(lambda: next(root.glob(f"mpi-{launcher.pid}-*"), None))
        found = wait_until(lambda: look(str(world)))
        launcher.send_signal(signal.SIGTERM)
        launcher.wait()
    return found


def test_python(tmp_path: Path, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (repetition, rounds):
        monkeypatch.setattr(module, "LASTING", LASTING)
    monkeypatch.setattr(deadlocks, "SELDOM", LASTING / 8)
    program = tmp_path / "prog.py"
    program.write_text(PYTHON)
    monitors: dict[str, DeadlockMonitor] = {}
    found = looked_at(
        program, sfm_dir, lambda world: monitors.setdefault(world, DeadlockMonitor(world)).check()
    )
    assert found["title"] == "Perhaps a livelock: 0 and 1 repeat the same for ever"
    assert found["sentences"][1].startswith(
        "1 receives from 0 in prog.py, line 7 and sends (tag=0) to 0 in prog.py, line 9, again and "
        "again, for "
    )


@needs_cc
def test_c(tmp_path: Path, sfm_dir: Path) -> None:
    """It may count its rounds in a variable, which nobody can read: no doubt."""
    program = tmp_path / "prog.c"
    program.write_text(C)

    def look(world: str) -> list[str] | None:
        found = explain(world, patience=0.1)
        assert not found["title"].startswith("Perhaps")
        texts = [judged["text"] for judged in found["processes"]]
        return texts if all("again and again" in text for text in texts) else None

    told = looked_at(program, sfm_dir, look)
    for rank, text in enumerate(told):
        pattern = (
            r" It sends \(tag=7\) to {0} in prog\.c, line 9 \(main\) and receives from {0} in "
        )
        assert re.search(pattern.format(1 - rank), text)
