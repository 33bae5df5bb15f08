"""A world of one machine: nothing listens, or if asked to, on its loopback interface only."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import PeerLost, SFMError
from tests.waiting import wait_until
from tests.zmq.conftest import Join, Start, link, member, repeat, transport
from tests.zmq.sockets import listening

pytestmark = pytest.mark.zmq


def test_messages_of_all_sizes_stay_on_the_machine(join: Join) -> None:
    before = listening()
    a, b = join("A"), join("B")
    assert a.route_kind("B") == "zmq" and listening() == [*before, "127.0.0.1", "127.0.0.1"]
    for n in (1, 1000, 2_000_000, 9_000_000):
        a.send(dest="B", n=n, data=np.arange(n, dtype=np.int8))
        assert (b.recv(n=n).data == np.arange(n, dtype=np.int8)).all()
        b.send(dest="A", n=n)
        assert a.recv(src="B").n == n
    b.close()
    with pytest.raises(PeerLost, match="'B'"):
        a.send(dest="B")


@pytest.mark.fault
def test_the_dead_are_noticed_and_replaced(join: Join, process: Start) -> None:
    b = join("B")
    a = process("A", "for n in range(100): sfm.send(dest='B', n=n)\nthreading.Event().wait()")
    b.recv(n=99)
    b.send(dest="A")
    to_a = link(b, "A")
    wait_until(lambda: to_a.up)
    a.kill()
    with pytest.raises(PeerLost, match="'A'"):
        repeat(lambda: b.recv(src="A"))
    wait_until(lambda: to_a.lost is not None)  # the connection itself tells, too
    with sfm_kernel.join(b.world, "A") as again:  # takes its place
        again.send(dest="B", again=True)
        assert b.recv(src="A").again


@pytest.mark.fault
def test_a_forked_child_keeps_no_socket(join: Join, process: Start) -> None:
    a = join("A")
    code = """
sfm.send(dest="A")
sfm.recv()
if os.fork() == 0:
    sys.stdin.read()
    os._exit(0)
sfm.send(dest="A", forked=True)
threading.Event().wait()
"""
    b = process("B", code)
    a.recv()
    a.send(dest="B")
    a.recv(forked=True)
    to_b = link(a, "B")
    b.kill()
    wait_until(lambda: to_b.lost is not None)
    assert b.stdin is not None
    b.stdin.close()


def test_sending_to_a_process_that_does_not_listen_is_explained(
    join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = join("A")
    monkeypatch.delenv("SFM_TRANSPORT")
    b = join("B")
    assert member(a, "B").address == "" and member(a, "B").public == ""
    assert member(b, "A").public == a.directory.pair.public.hex() != b.directory.pair.public.hex()
    with pytest.raises(SFMError, match="Give all processes of a world the same"):
        a.send(dest="B")
    b.send(dest="A", n=1)
    assert a.recv(src="B").n == 1
    assert transport(a).exchange.known(b.uid) is None


def test_without_being_asked_nothing_listens_and_zmq_is_not_imported(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import os, sys, psutil, sfm_kernel
with sfm_kernel.join(sys.argv[1]) as a, sfm_kernel.join(sys.argv[1]) as b:
    a.send(dest=1, n=1)
    b.recv(src=0)
    assert not psutil.Process().net_connections("all")
    names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
    assert not [name for name in names if name.startswith("sfm-zmq")], names
assert "zmq" not in sys.modules
"""
    monkeypatch.delenv("SFM_TRANSPORT")
    subprocess.run([sys.executable, "-c", code, world], check=True)


def test_pyzmq_is_not_imported_when_zmq_was_asked_for_either(world: str) -> None:
    code = """
import sys, threading, sfm_kernel
with sfm_kernel.join(sys.argv[1]) as a, sfm_kernel.join(sys.argv[1]) as b:
    a.send(dest=1, n=1)
    b.recv(src=0)
    assert a.route_kind(1) == "zmq"
    assert not [one.name for one in threading.enumerate() if "zmq" in one.name]  # no Python's
assert "zmq" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, world], check=True)
