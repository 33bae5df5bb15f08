"""Worlds: late joiners, leavers, several worlds, and two media in one world."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.contract.conftest import Background, Join, results
from tests.waiting import wait_until


def test_late_joiners_are_found(join: Join) -> None:
    a = join("A")
    with pytest.raises(sfm_kernel.UnknownName):
        a.send(dest="late")
    with pytest.raises(sfm_kernel.RecvTimeout, match="late"):
        a.wait_for("late", timeout=0.05)
    waiting = Background(lambda: a.recv(20, src="late"))
    late = join("late")
    a.wait_for("late", 1, timeout=20)
    late.send(dest="A", n=1)
    assert waiting.result().n == 1
    a.send(dest="late", n=2)
    assert late.recv(20).n == 2


def test_an_unknown_name_is_answered_with_those_in_the_order_of_ranks(join: Join) -> None:
    b = join("B", rank=1)
    join("home", guest=True)
    join("A", rank=0)
    with pytest.raises(sfm_kernel.UnknownName, match=r"There: 'A', 'B', 'home'$"):
        b.send(dest="C")


def test_a_process_leaves_and_comes_back(join: Join) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=1)
    assert b.recv(20).n == 1
    b.close()
    with pytest.raises((sfm_kernel.PeerLost, sfm_kernel.UnknownName)):
        a.send(dest="B", n=2)
    again = join("B")
    assert again.rank == 1
    a.send(dest="B", n=3)
    assert again.recv(20).n == 3
    again.send(dest=0, n=4)
    assert a.recv(20, src="B").n == 4


def test_worlds_do_not_mix(join: Join, world: str) -> None:
    a, other = join("A"), join("A", world=world + "-other")
    with pytest.raises(sfm_kernel.UnknownName):
        a.send(dest="B")
    other.send(dest="A", n=1)
    assert other.recv(20).n == 1
    assert not a.peek()


def test_guests_have_no_rank(join: Join) -> None:
    a = join()
    home = join("home", guest=True)
    assert (home.rank, home.name, a.size, home.size) == (None, "home", 1, 1)
    home.send(dest=0, n=1)
    assert a.recv(20, src="home").n == 1


def test_names_by_rank(join: Join) -> None:
    names = ("A", "B")
    ends = [join(names=names) for _ in range(3)]
    assert [(end.rank, end.name) for end in ends] == [(0, "A"), (1, "B"), (2, 2)]


def test_nobody_else_may_look(join: Join) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B")
    b.recv(20)
    folder = Path(a.folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_members_tell_who_is_there(join: Join) -> None:
    a = join("A", info={"engine_id": 7})
    b = join("B")
    members = {member.name: member for member in b.members()}
    assert members["A"].info == {"engine_id": 7}
    assert members["A"].pid == os.getpid()
    assert all(map(b.alive, members.values()))
    a.close()
    wait_until(lambda: "A" not in {member.name for member in b.members() if b.alive(member)})


@pytest.mark.zmq
def test_a_shm_pair_and_a_tcp_pair_in_one_world(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A and B share memory; C reaches both, and is reached, over TCP only."""
    ends: dict[str, Endpoint] = {}
    try:
        for name, kinds in {"A": "shm,zmq", "B": "shm,zmq", "C": "zmq"}.items():
            monkeypatch.setenv("SFM_TRANSPORT", kinds)
            ends[name] = sfm_kernel.join(world, name)
        a, _, c = ends.values()
        assert a.route_kind("B") == "shm"
        assert c.route_kind("A") == c.route_kind("B") == "zmq"

        def work(end: Endpoint) -> list[int]:
            others = [other for other in ends if other != end.name]
            for n in range(200):
                for other in others:
                    end.send(dest=other, n=n, pad=bytes(n * 97))
            got = {other: [end.recv(20, src=other).n for _ in range(200)] for other in others}
            return [n for numbers in got.values() for n in numbers]

        running = [Background(lambda end=end: work(end)) for end in ends.values()]
        assert results(running) == [list(range(200)) * 2] * 3
    finally:
        for end in ends.values():
            end.close()


def test_an_unknown_transport(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for kinds, why in {"pigeon": "'pigeon'", "shm,tcp": "give zmq instead of tcp"}.items():
        monkeypatch.setenv("SFM_TRANSPORT", kinds)
        with pytest.raises(sfm_kernel.WorldError, match=why):
            sfm_kernel.join(world, "A")


def test_a_forked_child_can_join_and_talk_to_its_parent(join: Join, kind: str, world: str) -> None:
    if kind == "inproc":
        pytest.skip("two processes")
    parent = join("parent")
    pid = os.fork()
    if pid == 0:
        try:
            with sfm_kernel.join(world, "child") as child:
                child.send(dest="parent", n=1)
                child.send(dest="parent", n=child.recv(20).n + 1)
        finally:
            os._exit(0)
    assert parent.recv(20, src="child").n == 1
    parent.send(dest="child", n=2)
    assert parent.recv(20, src="child").n == 3
    os.waitpid(pid, 0)


def test_a_forked_child_takes_nothing_from_its_parent(join: Join, kind: str) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    assert b.recv(20, src=0).n == 0
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.read(read, 1)
            for call in (b.recv_nb, b.peek, b.recv):
                with pytest.raises(sfm_kernel.EndpointClosed):
                    call(src=0)
            status = 0
        finally:
            os._exit(status)
    a.send(dest="B", n=1)
    os.write(write, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    a.send(dest="B", n=2)
    assert [b.recv(20, src=0).n for _ in range(2)] == [1, 2]
    os.close(read)
    os.close(write)
