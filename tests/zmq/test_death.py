"""Processes that die or leave while others talk to them over ZeroMQ, on one machine and several."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import PeerLost
from sfm_kernel.directory import DirectoryServer, is_alive
from sfm_kernel.endpoint import peers
from tests.waiting import wait_until
from tests.zmq.conftest import Join, Start, link, member, repeat, transport
from tests.zmq.sockets import deafen, hear_again, port

pytestmark = pytest.mark.zmq


# ---- death -----------------------------------------------------------------------------------

FOREVER = "threading.Event().wait()"


@pytest.mark.fault
def test_the_sender_is_killed(join: Join, process: Start) -> None:
    b = join("B")
    a = process("A", "for n in range(1000): sfm.send(dest='B', n=n)\n" + FOREVER)
    b.recv(n=500)
    a.kill()
    with pytest.raises(PeerLost, match="'A'"):
        repeat(lambda: b.recv(src="A"))


@pytest.mark.fault
def test_the_receiver_is_killed(join: Join, process: Start) -> None:
    a = join("A", buffering=1000)
    b = process("B", FOREVER)
    a.send(dest="B", n=0, data=bytes(1000))
    threading.Timer(0.2, b.kill).start()
    with pytest.raises(PeerLost, match="'B'"):
        a.send(dest="B", n=1, data=bytes(1000))
    with pytest.raises(PeerLost):
        a.send(dest="B", n=2)


@pytest.mark.fault
def test_a_stopped_process_is_waited_for(join: Join, process: Start) -> None:
    a = join("A")
    b = process("B", "sfm.send(dest='A', n=sfm.recv().n + 1)\n" + FOREVER)
    b.send_signal(signal.SIGSTOP)
    a.send(dest="B", n=1)  # connects to the stopped process
    with pytest.raises(sfm_kernel.RecvTimeout):
        a.recv(1.5, src="B")
    assert not transport(a).lost(member(a, "B"))
    b.send_signal(signal.SIGCONT)
    assert a.recv(src="B").n == 2


@pytest.mark.fault
def test_a_forked_child_does_not_keep_the_dead_alive(join: Join, process: Start) -> None:
    a = join("A")
    code = """
sfm.send(dest="A", n=1)
sfm.recv()
pid = os.fork()
if pid == 0:
    try:
        sfm.send(dest="A", n="child")
    except EndpointClosed:
        sys.stdin.read()
    os._exit(0)
sfm.send(dest="A", n=2)
threading.Event().wait()
"""
    b = process("B", code)
    a.recv(n=1)
    a.send(dest="B", go=True)
    a.recv(n=2)
    to_b = link(a, "B")
    b.kill()
    wait_until(lambda: to_b.lost is not None)  # the connection itself tells, not the directory
    with pytest.raises(PeerLost):
        a.recv(src="B")
    assert b.stdin is not None
    b.stdin.close()  # ends the child
    wait_until(lambda: not is_alive(member(a, "B").segment))


def test_a_process_that_leaves_is_gone_at_once(join: Join) -> None:
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    b.recv()
    b.close()
    with pytest.raises(PeerLost, match="'B'"):
        a.send(dest="B", n=1)


# ---- machines --------------------------------------------------------------------------------


@pytest.fixture
def machines(
    world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DirectoryServer]:
    """A world of a directory server; each process that gets another SFM_DIR is elsewhere."""
    with DirectoryServer(world, os.urandom(32), "tcp://127.0.0.1:0") as server:
        monkeypatch.delenv("SFM_TRANSPORT")  # ZeroMQ is chosen because nothing else reaches
        monkeypatch.setenv("SFM_DIRECTORY", server.url)
        monkeypatch.setenv("SFM_KEY", server.key.hex())
        monkeypatch.setenv("SFM_DIR", str(tmp_path / "here"))
        yield server


@pytest.mark.fault
def test_between_machines(
    machines: DirectoryServer, join: Join, process: Start, tmp_path: Path
) -> None:
    a = join("A")
    echo = "while True: sfm.send(dest='A', n=sfm.recv(src='A').n)"
    there = process("B", echo, SFM_DIR=str(tmp_path / "there"))
    process("C", echo)
    assert (a.route_kind("B"), a.route_kind("C")) == ("zmq", "shm")
    for n in range(100):
        if n == 50:
            machines.close()  # processes that know each other go on
        for dest in ("B", "C"):
            a.send(dest=dest, n=n)
            assert a.recv(src=dest).n == n
    there.kill()
    with pytest.raises(PeerLost, match="'B'"):
        a.recv(src="B")
    a.send(dest="C", n="still")
    assert a.recv(src="C").n == "still"


@pytest.mark.fault
def test_the_death_of_a_silent_process_on_another_machine(
    machines: DirectoryServer, join: Join, process: Start, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(peers, "DEATH_CHECK_EVERY", 1 << 40)  # which is for those that share memory
    a = join("A")
    there = process("B", FOREVER, SFM_DIR=str(tmp_path / "there"))
    threading.Timer(0.2, there.kill).start()
    with pytest.raises(PeerLost, match="'B'"):
        a.recv(src="B")
    again = process("B", "sfm.send(dest='A', rank=sfm.rank)\n" + FOREVER)
    assert a.recv(src="B").rank == 1
    assert again.poll() is None


def test_a_silent_process_that_has_departed_is_given_up(join: Join) -> None:
    """Its machine was switched off, and the directory no longer has it: nothing refuses for it."""
    a, b = join("A"), join("B")
    a.send(dest="B", n=0)
    assert b.recv().n == 0
    deafen(port(a), port(b))
    a.send(dest="B", n=1)
    wait_until(lambda: link(a, "B").silence)
    assert link(a, "B").lost is None
    transport(a).exchange.report_departed([member(a, "B").uid])
    with pytest.raises(PeerLost):
        repeat(lambda: (a.send(dest="B", n=2), time.sleep(0.05)))
    with pytest.raises(PeerLost):
        a.recv(src="B")
    hear_again(port(a), port(b))
