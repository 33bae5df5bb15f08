"""Processes that join, and members that have not heard of them yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sfm_kernel
from tests.waiting import next_line, wait_until
from tests.zmq.conftest import link, transport
from tests.zmq.machines import Machines, spread, two_machines

pytestmark = [pytest.mark.zmq, pytest.mark.fault]


@pytest.fixture
def machines(world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("SFM_DIR", str(sfm_dir))  # put back at the end
    with two_machines(world, sfm_dir) as running:
        yield running


Limit = Callable[[int], None]


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> Limit:
    return lambda most: monkeypatch.setattr("sfm_kernel.transport.zmq.MOST_MET", most)


PLACES = [("there", ""), ("there", ""), ("here", "")]


def test_a_newcomer_connects_to_those_with_whom_it_shares_no_memory(
    met: Limit, world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met(64)
    with spread(PLACES, world, sfm_dir, monkeypatch) as (a, b, c):
        wait_until(lambda: all(link(c, n).up and link(ends, 2).up for n, ends in enumerate((a, b))))
        assert transport(a).exchange.known(b.uid) is None, "they share memory"


def test_only_so_many_are_met(
    met: Limit, world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met(1)
    with spread(PLACES, world, sfm_dir, monkeypatch) as (a, b, c):
        known = [transport(c).exchange.known(end.uid) for end in (a, b)]
        assert sum(one is not None for one in known) == 1
        for end in (a, b):
            c.send(dest=end.rank, n=1)
            assert end.recv().n == 1


def io_threads() -> int:
    tasks = Path("/proc/self/task").iterdir()
    return sum((task / "comm").read_text().startswith("ZMQbg/IO") for task in tasks)


def test_one_thread_of_zeromq_serves_the_directory_and_the_members(
    met: Limit, world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met(64)
    before = io_threads()
    with spread(PLACES, world, sfm_dir, monkeypatch) as (a, _, c):
        c.send(dest=a.rank, n=1)
        assert a.recv().n == 1
        assert io_threads() - before == 3 + 1, "of each member, and of the directory server"
    assert io_threads() == before


def test_who_joins_with_a_new_key_talks_to_those_who_were_there(
    world: str, sfm_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with spread(PLACES[:1], world, sfm_dir, monkeypatch) as (a,):
        key, client = os.urandom(32), a._directory.client
        assert client is not None
        client.exchange("rekey", key=key.hex())
        monkeypatch.setenv("SFM_DIR", str(tmp_path / "elsewhere"))
        with sfm_kernel.join(world, "B", key=key) as b:
            b.send(dest=a.rank, n=1)
            assert a.route_kind("B") == "zmq" and a.recv(src="B").n == 1
            a.send(dest="B", n=2)
            assert b.recv(src=a.rank).n == 2


def test_who_hears_late_of_a_newcomer_is_waited_for(machines: Machines) -> None:
    """A's directory client needs the GIL to hear of B's key; meanwhile it lets B wait, B tries
    again, and takes it for no death."""
    code = "ctypes.PyDLL(None).sleep(6)\nprint(sfm.recv(src='B').n, flush=True)\nsys.stdin.read()"
    a = machines.process("A", "there", code, relay=False)
    machines.process("B", "here", "sfm.send(dest='A', n=7)\nsys.stdin.read()")
    assert next_line(a) == "7"
