"""Processes that programs start later, or meet: what the launcher does and says. programs/mpi tests
what the programs themselves see (spawn.c, ports.c, sessions.c)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sfm_kernel.c import LIB
from sfm_kernel.mpi.launch.child import Child
from sfm_kernel.mpi.launch.job import Job
from sfm_kernel.mpi.launch.reports import Report
from sfm_kernel.mpi.launch.worlds import Spawned
from tests.c import mpich
from tests.c.building import needs_mpi
from tests.mpi.launching import PATIENCE, launched, mpi_worlds, run
from tests.waiting import wait_until

FOLDER = Path(__file__).parent / "programs" / "dynamic"

pytestmark = needs_mpi


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dynamic")
    for name in ("meet", "spawner", "early"):
        assert mpich.compiled(FOLDER / f"{name}.c", folder / name) == ""
    return folder


@pytest.fixture(autouse=True)
def no_world_left() -> Iterator[None]:
    before = set(mpi_worlds())
    yield
    wait_until(lambda: set(mpi_worlds()) <= before)


def spawner(programs: Path, *words: str, ranks: int = 1) -> subprocess.CompletedProcess[str]:
    path = str(programs / "spawner")
    return run("-n", str(ranks), "--label", path, *words, cwd=programs, timeout=PATIENCE)


def alone(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program without launcher."""
    environment = os.environ | {"LD_LIBRARY_PATH": LIB, "SFM_PYTHON": sys.executable}
    return subprocess.run(
        [path, *words], env=environment, text=True, capture_output=True, timeout=PATIENCE
    )


def test_lines_of_workers_have_their_world_and_rank(programs: Path) -> None:
    done = spawner(programs, "works", ranks=2)
    assert sorted(done.stdout.splitlines()) == [
        "[0] parent 0 has gone on",
        f"[1:0] worker 0 of 2 in {programs}",
        f"[1:1] worker 1 of 2 in {programs}",
        "[1] parent 1 has gone on",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_worker_that_dies_ends_all(programs: Path) -> None:
    done = spawner(programs, "dies")
    assert done.returncode == 134
    assert "sfm: rank 1 of spawned world 1 was killed by SIGABRT" in done.stderr
    assert "the other ranks were ended" in done.stderr


@pytest.mark.parametrize(
    ("case", "who"),
    [
        ("lost worker", "process 1 of spawned world 1"),
        ("lost parent", "process 1 of the first MPI_COMM_WORLD"),
    ],
)
def test_a_process_of_another_world_is_named_by_its_world(
    programs: Path, case: str, who: str
) -> None:
    done = spawner(programs, case, ranks=2)
    assert f": MPI_Recv: {who} has ended, so this call would wait for ever" in done.stderr


def test_a_worker_that_has_done_its_part_may_end(programs: Path, tmp_path: Path) -> None:
    """Its parents, which still wait for each other, have received what it had sent."""
    calls = ["bcast", "ibcast", "barrier", "any"]
    done = run("-n", "2", str(programs / "early"), *calls, cwd=tmp_path, timeout=PATIENCE)
    printed = sorted(f"{call} GOOD" for call in calls * 2)
    assert (sorted(done.stdout.splitlines()), done.stderr) == (printed, "")


def test_the_end_of_a_worker_may_be_read_before_the_start_of_another() -> None:
    """Each has a socket of its own. The request to start them has succeeded."""
    answers: list[dict[str, Any]] = []
    asker = SimpleNamespace(answer=answers.append)
    job = Job([], serve=(-1, "mpi-0-0-0"))
    world = Spawned([], [2], cast(Child, asker))
    first, second = (
        SimpleNamespace(world=world, joined=False, finished=False, status=None) for _ in range(2)
    )
    world.children[:] = cast("list[Child]", [first, second])
    for child, kind in ((first, "started"), (first, "finished"), (second, "started")):
        job._received(cast(Child, child), Report(kind))
    assert [answer["sizes"] for answer in answers] == [[2]]


def test_workers_that_raise_together_are_read_once(tmp_path: Path) -> None:
    """Each is a Python of its own, which writes its traceback in pieces."""
    (tmp_path / "workers.py").write_text(
        "import sys\nfrom mpi4py import MPI\n"
        "if MPI.Comm.Get_parent() == MPI.COMM_NULL:\n"
        "    MPI.COMM_SELF.Spawn(sys.executable, [__file__], maxprocs=5).recv()\n"
        "MPI.COMM_WORLD.Barrier()\n"
        "raise ValueError('no work')\n"
    )
    done = run("-n", "1", str(tmp_path / "workers.py"))
    worker = done.stderr[done.stderr.index("Traceback") :].splitlines()[:4]
    assert worker[1].endswith('workers.py", line 6, in <module>') and "raise" in worker[2]
    assert worker[3] == "ValueError: no work"
    assert done.stderr.count("ValueError: no work") == 1


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("missing", "there is no program {folder}/./none"),
        ("no MPI", "rank 0 of spawned world 1 ended with exit status 0 before MPI_Init"),
        ("away", "host mars is another machine"),
        ("many", "there is room for 511 more processes, and 600 are asked for"),
    ],
)
def test_an_error_says_why_a_program_cannot_start(programs: Path, case: str, why: str) -> None:
    done = spawner(programs, case)
    assert done.returncode != 0
    assert why.format(folder=programs) in done.stderr
    assert "MPI_Comm_spawn" in done.stderr


def test_info_says_where_and_how_many(programs: Path) -> None:
    done = spawner(programs, "folder")
    assert "[1:1] worker 1 of 2 in /" in done.stdout.splitlines(), done.stderr
    done = spawner(programs, "soft")
    assert f"[1:0] worker 0 of 2 in {programs}" in done.stdout.splitlines(), done.stderr


def test_a_process_without_launcher_starts_one(programs: Path) -> None:
    done = alone(programs / "spawner", "works")
    assert done.returncode == 0, done.stderr
    assert sorted(line.split(" in ")[0] for line in done.stdout.splitlines()) == [
        "parent 0 has gone on", "worker 0 of 2", "worker 1 of 2",
    ]  # fmt: skip


def test_programs_that_were_started_apart_meet(programs: Path) -> None:
    path, name = str(programs / "meet"), f"meet-{os.getpid()}"
    with launched("-n", "2", path, "server", name) as server:
        client = run("-n", "3", path, "client", name, timeout=PATIENCE)
        assert (client.stdout, client.stderr) == ("5 processes have met\n", "")
        assert server.wait(PATIENCE) == 0
    with launched("-n", "2", path, "server", name) as server:
        client = alone(programs / "meet", "client", name)
        assert (client.stdout, client.stderr) == ("3 processes have met\n", "")
        assert server.wait(PATIENCE) == 0


def test_closing_the_port_of_another_process_is_an_error_that_names_it() -> None:
    text = (
        "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
        "port = comm.bcast(MPI.Open_port() if comm.rank == 0 else None)\n"
        "if comm.rank == 1: MPI.Close_port(port)\n"
    )
    done = run("-n", "2", "-c", text)
    assert "only rank 0 of the program that opened it accepts there" in done.stderr
    assert "MPI_Comm_disconnect" in done.stderr and done.returncode == 1


def test_a_program_survives_the_death_of_one_that_it_met(programs: Path) -> None:
    path, name = str(programs / "meet"), f"meet-{os.getpid()}"
    with launched("-n", "1", path, "server", name, "die") as server:
        client = run("-n", "1", path, "client", name, "die", timeout=PATIENCE)
        assert "MPI_Recv: process 0 of another launch has ended" in client.stdout
        assert client.returncode == 0, client.stderr
        assert server.wait(PATIENCE) == 134
