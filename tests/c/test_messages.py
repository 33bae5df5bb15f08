"""Messages, communicators and collectives of libmpi, by programs that check every result."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.c import building
from tests.conftest import crossed
from tests.mpi import launching
from tests.waiting import wait_until

PROGRAMS = Path(__file__).parent / "programs/checks"
LIMIT = 120
"""Seconds; a program that takes so long hangs."""

NO_REACH = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
calls = [(0x20, 0, 0, 0), (0x15, 1, 0, 310), (0x15, 0, 1, 311)]
refused = [*calls, (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in refused))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Filter(len(refused), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program)) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Run a program to which the kernel refuses process_vm_readv and process_vm_writev, with EPERM."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with libmpi.so.12."""
    folder = tmp_path_factory.mktemp("lib")
    for name in ("libmpi.so.12", "libmpi.so"):
        (folder / name).symlink_to(building.library("libmpi.so.12"))
    return folder


@pytest.fixture
def world() -> Iterator[dict[str, str]]:
    """The common environment of all ranks, which must leave no segment or ring behind."""
    root = Path("/dev/shm") / f"sfm-messages-{os.getpid()}"
    root.mkdir(mode=0o700)
    try:
        yield {"SFM_DIR": str(root), "SFM_MPI_WORLD": "checks"}
        left = [path for path in root.rglob("*") if path.suffix in (".seg", ".ring")]
        assert not left
    finally:
        shutil.rmtree(root)


def compiled(name: str, library: Path) -> Path:
    program = library / name
    if not program.exists():
        source = PROGRAMS / f"{name}.c"
        words = [
            "cc",
            "-O1",
            f"-I{building.INCLUDE}",
            source,
            "-o",
            program,
            f"-L{library}",
            "-lmpi",
        ]
        subprocess.run(words, check=True)
    return program


def ended(
    words: Sequence[str], size: int, world: dict[str, str], library: Path
) -> tuple[list[str], list[int]]:
    """Run this number of ranks to their end; return what each has printed, and its exit status."""
    common = os.environ | world | {"LD_LIBRARY_PATH": str(library), "SFM_MPI_SIZE": str(size)}
    ranks = [
        subprocess.Popen(
            words,
            env=common | {"SFM_MPI_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]
    try:
        printed = [rank.communicate(timeout=LIMIT)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return printed, [rank.returncode for rank in ranks]


def run(words: Sequence[str], size: int, world: dict[str, str], library: Path) -> list[str]:
    """What each rank has printed; all must succeed."""
    printed, statuses = ended(words, size, world, library)
    assert statuses == [0] * size, "\n".join(printed)
    return printed


@pytest.mark.parametrize(
    ("name", "size"),
    crossed(["collectives", "messages", "communicators", "tools"], [5, 1, 2, 3, 8]),
)
def test_every_result_is_right(name: str, size: int, world: dict[str, str], library: Path) -> None:
    printed = run([str(compiled(name, library))], size, world, library)
    assert printed[0].endswith(f"all {name} are right\n")


@pytest.mark.parametrize("name", ["messages", "collectives"])
def test_results_are_right_where_no_process_may_read_anothers_memory(
    name: str, world: dict[str, str], library: Path
) -> None:
    words = [sys.executable, "-c", NO_REACH, str(compiled(name, library))]
    assert f"all {name} are right" in run(words, 3, world, library)[0]


def test_messages_may_be_larger_than_the_ring(world: dict[str, str], library: Path) -> None:
    world["SFM_RING_BYTES"] = "4096"
    assert run([str(compiled("messages", library))], 3, world, library)


@pytest.mark.parametrize("size", [2, 3])
def test_collectives_that_disagree_fail_and_send_no_memory_that_was_given_back(
    size: int, world: dict[str, str], library: Path
) -> None:
    program = str(compiled("failures", library))
    assert run([program], size, world, library)[0] == "all failures are right\n"
    words = [sys.executable, "-c", NO_REACH, program, "nothing is fetched"]
    assert run(words, size, world, library)[0] == "all failures are right\n"


def test_a_rank_that_waits_for_a_killed_process_gets_an_error(
    world: dict[str, str], library: Path
) -> None:
    printed, statuses = ended([str(compiled("loss", library))], 3, world, library)
    assert statuses[1] == -signal.SIGKILL
    assert printed[0] == printed[2] == "lost\n" * 7
    for path in Path(world["SFM_DIR"]).rglob("*.*"):
        if path.suffix in (".seg", ".ring"):
            path.unlink()  # of the dead rank, which `sfm clean` would remove


def test_a_rank_that_is_killed_in_init_keeps_no_other_one_there(
    world: dict[str, str], library: Path
) -> None:
    common = os.environ | world | {"LD_LIBRARY_PATH": str(library), "SFM_MPI_SIZE": "3"}
    words, root = [str(compiled("loss", library))], Path(world["SFM_DIR"])
    ranks = [
        subprocess.Popen(words, env=common | {"SFM_MPI_RANK": rank}, stderr=subprocess.PIPE)
        for rank in "01"
    ]
    try:
        wait_until(
            lambda: "".join(path.read_text() for path in root.rglob("*.json")).count(".seg") == 2
        )
        time.sleep(0.3)  # both wait for rank 2
        ranks[1].kill()
        assert b"process 1 of MPI_COMM_WORLD has ended" in ranks[0].communicate(timeout=LIMIT)[1]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
        for path in root.rglob("*.*"):
            path.unlink()


LINE = r" in disagree\.c, line \d+ \(main\)"


def calls(rank: int, call: str, call_here: str) -> str:
    line = f"({LINE})?" if call == FINALIZE else LINE
    called = f"process {rank} of MPI_COMM_WORLD calls {re.escape(call)}{line}"
    return f"{called} where this one calls {re.escape(call_here)}"


def has_called(call: str, here: str = "has not") -> str:
    called = f"process 1 of MPI_COMM_WORLD has called {re.escape(call)}{LINE}"
    return f"{called}, and this process {here}"


BARRIER, FINALIZE = "MPI_Barrier", "MPI_Finalize"


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        (0, 15, [calls(0, BARRIER, "MPI_Bcast")]),
        (
            1,
            1,
            [
                has_called(
                    "MPI_Reduce(op=MPI_SUM, root=0)", rf"has called MPI_Bcast\(root=0\){LINE}"
                )
            ],
        ),
        # Each has the other's message: the rank that looks first gets the error, and ends both.
        (2, 15, [calls(1, BARRIER, FINALIZE), calls(0, FINALIZE, BARRIER)]),
        (3, 1, ["has called MPI_Bcast"]),
        (4, 15, [f"MPI_Wait: {calls(0, 'MPI_Ibarrier', 'MPI_Iallreduce(op=MPI_SUM)')}"]),
        (
            5,
            15,
            [
                calls(0, "MPI_Neighbor_allgather", "MPI_Neighbor_alltoall"),
                calls(1, "MPI_Neighbor_alltoall", "MPI_Neighbor_allgather"),
            ],
        ),
    ],
)
def test_ranks_that_disagree_about_a_collective_are_told(
    how: int, status: int, said: list[str]
) -> None:
    source = str(PROGRAMS / "disagree.c")
    done = launching.run("-n", "2", source, str(how), timeout=launching.PATIENCE)
    assert done.returncode == status
    assert sum(bool(re.search(sentence, done.stderr)) for sentence in said) == 1, done.stderr
