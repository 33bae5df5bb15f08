"""Thousands come and go in one world, and no process keeps anything of them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from tests.conftest import Spawn
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(3600)

RESIDENT = """
import contextlib, sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "resident")
while "end" not in (m := sfm.recv()):
    with contextlib.suppress(sfm_kernel.PeerLost, sfm_kernel.UnknownName):
        sfm.send(dest=m.src, welcome=m.src)
"""


@dataclass(frozen=True)
class Held:
    """Resources of a process: descriptors, mapped shared files, threads, private memory (kB)."""

    files: int
    mappings: int
    threads: int
    memory: int

    @classmethod
    def by(cls, pid: int) -> Held:
        with open(f"/proc/{pid}/maps") as maps:
            mappings = sum(".seg" in line or ".ring" in line for line in maps)
        with open(f"/proc/{pid}/status") as status:
            facts = dict(line.split(":", 1) for line in status)
        return cls(
            len(os.listdir(f"/proc/{pid}/fd")),
            mappings,
            int(facts["Threads"]),
            int(facts["RssAnon"].split()[0]),
        )

    def within(self, other: Held, memory: int) -> bool:
        """Whether this is no more than the other, but for ``memory`` kB and some mappings.

        The process still maps a ring and a segment each to and from the last peers that died; it
        gives them up when it meets the next one.
        """
        return (
            self.files <= other.files
            and self.mappings <= other.mappings + 8
            and self.threads <= other.threads
            and self.memory <= other.memory + memory
        )


@pytest.fixture
def keeper(world: str, over_shm: None) -> Iterator[Endpoint]:
    """Keeps the world while others come and go."""
    with sfm_kernel.join(world, "keeper", guest=True) as endpoint:
        yield endpoint


@pytest.fixture
def resident(keeper: Endpoint, spawn: Spawn) -> Iterator[int]:
    """The pid of a process that answers every newcomer, and stays to the end."""
    process = spawn(RESIDENT, keeper.world)
    keeper.wait_for("resident", timeout=20)
    yield process.pid
    keeper.send(dest="resident", end=True)
    process.wait()


def come_and_go(world: str, name: str) -> None:
    """Join, exchange a message with the resident, leave."""
    with sfm_kernel.join(world, name) as sfm:
        sfm.send(dest="resident", hello=name)
        sfm.recv(60, src="resident")


def held(resident: int) -> tuple[Held, Held]:
    """Resources of this process and of the resident."""
    gc.collect()  # an endpoint and its parts refer to each other
    return Held.by(os.getpid()), Held.by(resident)


@contextmanager
def nothing_kept(keeper: Endpoint, resident: int) -> Iterator[None]:
    """Both processes and the folder are afterwards as they were.

    Memory is compared with a generous allowance: a leak of one page for each join of the long
    version is above it.
    """
    before, files, allowance = held(resident), set(os.listdir(keeper.folder)), 8 << 10
    yield

    def same() -> bool:
        both = zip(held(resident), before, strict=True)
        return all(now.within(then, allowance) for now, then in both)

    come_and_go(keeper.world, "last")  # a new ring lets its reader give up those of the dead
    wait_until(same)
    assert set(os.listdir(keeper.folder)) == files
    with open(os.path.join(keeper.folder, "members.json"), "rb") as table:
        assert len(table.read()) < 10_000


def test_joins_one_after_the_other(keeper: Endpoint, resident: int, effort: int) -> None:
    for _ in range(20):
        come_and_go(keeper.world, "A")
    with nothing_kept(keeper, resident):
        for _ in range(200 * effort):
            come_and_go(keeper.world, "A")


def test_joins_by_threads(keeper: Endpoint, resident: int, effort: int) -> None:
    """Four threads of one process come and go at the same time, under their own names."""

    def some(name: str, count: int) -> None:
        for _ in range(count):
            come_and_go(keeper.world, name)

    def all_at_once(count: int) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(some, "ABCD", [count] * 4))

    all_at_once(5)
    with nothing_kept(keeper, resident):
        all_at_once(50 * effort)


MAYFLIES = """
import os, sys
import sfm_kernel
world, count = sys.argv[1], int(sys.argv[2])
for n in range(count):
    pid = os.fork()
    if pid == 0:
        try:
            sfm = sfm_kernel.join(world, "mayfly")
            sfm.send(dest="resident", n=n)
            if n % 2:
                sfm.recv(60, src="resident")
            os.kill(os.getpid(), 9)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), status
"""


@pytest.mark.fault
def test_joins_of_processes_that_are_killed(keeper: Endpoint, resident: int, effort: int) -> None:
    """Each joins, exchanges messages, and dies without leaving; the next takes its place."""

    def mayflies(count: int) -> None:
        subprocess.run([sys.executable, "-c", MAYFLIES, keeper.world, str(count)], check=True)

    mayflies(10)
    with pytest.raises(PeerLost):
        keeper.send(dest="mayfly")
    come_and_go(keeper.world, "mayfly")
    with nothing_kept(keeper, resident):
        mayflies(50 * effort)
        come_and_go(keeper.world, "mayfly")
