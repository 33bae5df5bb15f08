"""Programs in Python beside programs in C."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.c.building import PROGRAMS, needs_cc
from tests.mpi.launching import launched, lines, mpi_worlds, run

WORKER = PROGRAMS.parent / "lines" / "worker.c"
LINES = WORKER.read_text().splitlines()
MASTER = """
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
assert "sfm-kernel" in MPI.Get_library_version()
numbers, sum, many = np.arange(1000.0), np.empty(1), np.arange(300000, dtype="i")
comm.Bcast(numbers)
for worker in range(1, comm.size):
    comm.Recv(sum, worker, 5)
    assert sum[0] == numbers.sum() * worker
    comm.Send(many, worker, 6)
    twice = np.empty_like(many)
    comm.Recv(twice, worker, 7)
    assert (twice == 2 * many).all()
one, all = np.array([0]), np.array([0])
comm.Allreduce(one, all)
for worker in range(1, comm.size):
    comm.Send([b"hello", MPI.CHAR], worker, 8)
half = comm.Split(0, 0)
least = np.array([9], "i")
half.Allreduce(np.array([comm.rank], "i"), least, MPI.MIN)
print("master:", all[0], least[0])
half.Free()
comm.Barrier()
"""
OTHER = """
import sys
from mpi4py import MPI

comm = MPI.COMM_WORLD
def deed(word):
    if word == "raise":
        raise ValueError("wrong")
    if word == "exit":
        sys.exit(5)
    if word == "abort":
        comm.Abort(9)
    if word == "objects":
        print(len(comm.sendrecv({"x": [1] * 9999}, 1 - comm.rank, source=1 - comm.rank)["x"]))
    if word == "input":
        print(input("word? "))
    if word == "stay":
        print("in", flush=True)
        comm.recv(source=1)
if comm.rank == 0 or sys.argv[1] == "objects":
    deed(sys.argv[1])
print("in", flush=True)
comm.Barrier()
"""
ENDED = "; the other ranks were ended\n"

pytestmark = needs_cc


@pytest.fixture
def master(tmp_path: Path) -> str:
    (tmp_path / "master.py").write_text(MASTER)
    return str(tmp_path / "master.py")


@pytest.fixture
def other(tmp_path: Path) -> str:
    (tmp_path / "other.py").write_text(OTHER)
    return str(tmp_path / "other.py")


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_messages_and_collectives_of_both(workers: int, master: str) -> None:
    done = run("-n", "1", master, ":", "-n", str(workers), str(WORKER))
    total = workers * (workers + 1) // 2
    lines_of_workers = [
        f"worker {rank}: {total} hello {rank % 2}" for rank in range(1, workers + 1)
    ]
    assert sorted(done.stdout.splitlines()) == [f"master: {total} 0", *lines_of_workers], (
        done.stderr
    )
    assert (done.stderr, done.returncode) == ("", 0)


def test_objects_of_two_and_input(other: str) -> None:
    done = run("-n", "2", other, "objects", ":", "-n", "1", str(WORKER), "wait")
    assert done.stdout.count("9999") == 2 and done.returncode == 0, done.stderr
    done = run("-n", "1", other, "input", ":", "-n", "1", str(WORKER), "wait", stdin="hello\n")
    assert done.stdout == "word? hello\nin\n", done.stderr


@pytest.mark.parametrize(
    ("deed", "said", "status"),
    [
        ("raise", "ValueError: wrong\nsfm: rank 0 raised this", 1),
        ("exit", "sfm: rank 0 ended with exit status 5", 5),
        ("abort", "sfm: rank 0 called Abort(9)", 9),
    ],
)
def test_how_python_ends(deed: str, said: str, status: int, other: str) -> None:
    done = run("-n", "2", other, deed, ":", "-n", "2", str(WORKER), "wait")
    assert done.stderr.endswith(f"{said}{ENDED}") and done.returncode == status
    assert done.stderr.count("Traceback") == (deed == "raise")
    assert "runpy" not in done.stderr and "beside.py" not in done.stderr
    assert mpi_worlds() == []


@pytest.mark.parametrize(
    ("deed", "said", "status"),
    [
        ("fail", "was stopped in worker.c, line {}: MPI_Send: argument dest is 77", 6),
        ("exit", "ended with exit status 3", 3),
        ("abort", "called MPI_Abort(7) in worker.c, line {}", 7),
    ],
)
def test_how_c_ends(deed: str, said: str, status: int, other: str) -> None:
    done = run("-n", "2", other, "wait", ":", "-n", "1", str(WORKER), deed)
    (nth,) = (nth for nth, line in enumerate(LINES, 2) if f'"{deed}"' in line)
    assert done.stderr.startswith(f"sfm: rank 2 {said.format(f'{nth} (main)')}"), done.stderr
    assert done.stderr.endswith(ENDED) and done.stderr.count("\n") == 1
    assert done.returncode == status


def test_stop_says_where_both_were(other: str) -> None:
    with launched("-n", "2", other, "stay", ":", "-n", "1", str(WORKER), "stay") as process:
        assert lines(process, 3) == ["in\n"] * 3
        process.send_signal(signal.SIGINT)
        said = process.communicate()[1]
    assert process.returncode == 130 and "Traceback" not in said
    source = [line.strip() for line in OTHER.splitlines()]
    # In the call that nobody ends, or still in the print before it.
    calls = {"comm.recv(source=1)": "deed", "comm.Barrier()": "<module>"}
    ends = tuple(
        f", line {nth + 1}, in {name}: {source[nth]}"
        for call, name in calls.items()
        for nth in (source.index(call), source.index(call) - 1)
    )
    *python, c = sorted(said.splitlines())
    assert all(line.endswith(ends) and f"was in {other}" in line for line in python), said
    # Who hears of another rank's end before it is interrupted itself says its line all the same.
    assert re.match(r"sfm: rank 2 was in worker.c, line \d+ \(main\): ", c), said
