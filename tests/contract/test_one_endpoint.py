"""Programs in Python and in C are refused the same, and become the same, for the same inputs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, directory
from tests.conftest import Spawn
from tests.contract.hosts import HOSTS
from tests.waiting import wait_until

pytestmark = pytest.mark.keeps("two processes join for all tests of the module")

Outcome = list[Any]
"""The name of an error; or a name and a rank."""


class Ask:
    """``ask("c", world, ...)``: the outcome of a join in a process of that language."""

    def __init__(self) -> None:
        self._hosts: dict[str, subprocess.Popen[str]] = {}

    def __call__(
        self,
        host: str,
        world: str,
        *,
        name: str | None = None,
        rank: int | None = None,
        guest: bool = False,
        names: tuple[str, ...] = (),
        dest: str = "",
        environment: Mapping[str, str] = {},
    ) -> Outcome:
        asked = {"world": world, "name": name, "rank": rank, "guest": guest, "names": names}
        asked |= {"dest": dest, "environment": environment}
        process = self._hosts.get(host) or self._start(host)
        assert process.stdin is not None and process.stdout is not None
        print(json.dumps(asked), file=process.stdin, flush=True)
        outcome: Outcome = json.loads(process.stdout.readline())
        return outcome

    def _start(self, host: str) -> subprocess.Popen[str]:
        self._hosts[host] = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.hosts", host],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"SFM_TRANSPORT": "shm"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self._hosts[host]

    def close(self) -> None:
        for process in self._hosts.values():
            process.communicate()


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    hosts = Ask()
    yield hosts
    hosts.close()


@pytest.fixture
def keeper(world: str, over_shm: None) -> Iterator[Endpoint]:
    """Keeps the world, in which the others come and go."""
    with sfm_kernel.join(world, "keeper", guest=True) as sfm:
        yield sfm


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


JOINED = "joined"


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        *[(name, JOINED) for name in ("A", "Zoë the 3rd", "漢字", "it's", "-", "x1", "x" * 64)],
        *[(name, "BadName") for name in ("", "x" * 65, "a\nb", "a\u200bb", "a\u00a0b", "\ue000")],
        *[(name, "BadName") for name in ("12", "+3", "-4", "½", "²", "١٢", "Ⅳ")],
    ],
)
def test_names(name: str, outcome: str, host: str, keeper: Endpoint, ask: Ask) -> None:
    expected = [name, 0] if outcome == JOINED else [outcome]
    assert ask(host, keeper.world, name=name) == expected


@pytest.mark.parametrize(
    ("site", "outcome"),
    [
        *[(site, JOINED) for site in ("lyon", "Zürich-2", "x" * 64)],
        *[
            (site, "BadName")
            for site in ("two words", "a\tb", "x" * 65, "no\u200bthing", "a\u00a0b")
        ],
    ],
)
def test_sites(site: str, outcome: str, host: str, keeper: Endpoint, ask: Ask) -> None:
    got = ask(host, keeper.world, name="A", environment={"SFM_SITE": site})
    if outcome == JOINED:
        assert got == ["A", 0] and keeper.directory.departed()[-1].site == site
    else:
        assert got == [outcome]


def test_without_a_site_it_is_the_machines(host: str, keeper: Endpoint, ask: Ask) -> None:
    assert ask(host, keeper.world, name="A", environment={"SFM_SITE": ""}) == ["A", 0]
    assert keeper.directory.departed()[-1].site == keeper.site


@pytest.mark.parametrize("world", ["", ".x", "a/b", "a b", "ä", "x" * 65])
def test_worlds(world: str, host: str, ask: Ask) -> None:
    assert ask(host, world) == ["BadName"]


def test_ranks_that_living_processes_have(host: str, keeper: Endpoint, ask: Ask) -> None:
    world = keeper.world
    with sfm_kernel.join(world, "A", 1):
        assert ask(host, world) == ["0", 0]
        assert ask(host, world, rank=7) == ["7", 7]
        assert ask(host, world, rank=1) == ask(host, world, name="A") == ["NameInUse"]
        with sfm_kernel.join(world):
            assert ask(host, world) == ["2", 2]
        assert ask(host, world, guest=True) == ["home", None]
        with sfm_kernel.join(world, guest=True):
            assert ask(host, world, guest=True) == ["home2", None]


def test_names_by_rank(host: str, keeper: Endpoint, ask: Ask) -> None:
    world, names = keeper.world, ("A", "B", "C")
    assert ask(host, world, names=names) == ["A", 0]
    assert ask(host, world, names=names, name="C") == ["C", 2]
    with sfm_kernel.join(world):  # rank 0, by the name 0
        assert ask(host, world, names=names) == ["B", 1]
    with sfm_kernel.join(world, "A", 2):  # rank 0's name is taken
        assert ask(host, world, names=names) == ["B", 1]
    assert ask(host, world, names=("A", "a\nb")) == ["BadName"]


JOINS = """
import sfm_kernel, sys, time
name, rank = sys.argv[2:]
sfm_kernel.join(sys.argv[1], name, int(rank) if rank else None, guest=not rank)
print("in", flush=True)
time.sleep(600)
"""


def joined(spawn: Spawn, world: str, name: str, rank: str = "") -> subprocess.Popen[Any]:
    """A process that has joined; without a rank, as a guest."""
    process = spawn(JOINS, world, name, rank, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "in\n"
    return process


def test_a_dead_process_s_rank_goes_to_its_name(
    host: str, keeper: Endpoint, ask: Ask, spawn: Spawn
) -> None:
    process = joined(spawn, keeper.world, "A", "3")
    process.kill()
    process.wait()
    assert ask(host, keeper.world, name="A") == ["A", 3]


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 33])
def test_a_damaged_key(key: bytes, host: str, keeper: Endpoint, ask: Ask) -> None:
    file = Path(keeper.folder, "key")
    before = file.read_bytes()
    file.write_bytes(key)
    assert ask(host, keeper.world) == ["WorldAccess"]
    file.write_bytes(before)
    file.chmod(0o644)
    assert ask(host, keeper.world) == ["WorldAccess"]
    file.chmod(0o600)
    assert ask(host, keeper.world) == ["0", 0]


@pytest.fixture
def ring(
    world: str,
    ask: Ask,
    host: str,
    spawn: Spawn,
    over_shm: None,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Any]:
    """``ring(SFM_RING_BYTES="4096")``: the bytes of the first ring in that environment."""

    def ring(**environment: str) -> Any:
        root = environment.get("SFM_DIR", os.environ["SFM_DIR"])
        monkeypatch.setenv("SFM_DIR", root)
        reader = joined(spawn, world, "reader")
        reader.send_signal(signal.SIGSTOP)  # it opens no ring, and removes none
        try:
            outcome = ask(host, world, name="A", dest="reader", environment=environment)
            if outcome != ["A", 0]:
                return outcome
            (file,) = Path(root, world).glob("*.ring")
            return file.stat().st_size
        finally:
            reader.kill()
            reader.wait()
            directory.clean()

    return ring


@pytest.mark.parametrize("size", ["5000", "2048", "x", "-4096", "2147483648", "４０９６"])
def test_sizes_that_no_ring_has(size: str, ring: Callable[..., Any]) -> None:
    assert ring(SFM_RING_BYTES=size) == ["ValueError"]


@pytest.mark.parametrize("size", ["-1", "x", "100"])
def test_sizes_that_no_arena_has(size: str, ring: Callable[..., Any]) -> None:
    assert ring(SFM_ARENA_BYTES=size) == ["ValueError"]


def test_rings_are_smaller_in_a_small_shared_memory(
    ring: Callable[..., Any], tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    usual, small = ring(), ring(SFM_RING_BYTES="4096")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", tmp_path], check=True)
    try:
        assert ring(SFM_DIR=f"{tmp_path}/sfm") - small < (usual - small) / 3
    finally:
        wait_until(lambda: subprocess.run(["umount", tmp_path]).returncode == 0)
