"""A world of one machine: nothing listens, or, where it was asked for, a socket in its folder."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost, SFMError
from tests.zmq.conftest import link, member, repeat, transport, wait_until

pytestmark = pytest.mark.zmq


@pytest.fixture(params=["short", "long"], autouse=True)
def folder(
    request: pytest.FixtureRequest, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """The world's folder has a path that a socket's name can hold, or not."""
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")
    with tempfile.TemporaryDirectory(dir=sfm_dir) as path:
        os.mkdir(below := os.path.join(path, "f" * (100 if request.param == "long" else 1)), 0o700)
        monkeypatch.setenv("SFM_DIR", below)
        yield


def listening() -> list[object]:
    """Addresses on which this process waits for connections over the network."""
    connections = psutil.Process().net_connections("inet")
    return [one.laddr for one in connections if one.status == psutil.CONN_LISTEN]


def test_messages_of_all_sizes_go_through_a_socket_that_nobody_else_can_reach(
    join: Callable[..., Endpoint],
) -> None:
    before = listening()
    a, b = join("A"), join("B")
    assert a.route_kind("B") == "zmq" and listening() == before
    for n in (1, 1000, 2_000_000, 9_000_000):
        a.send(dest="B", n=n, data=np.arange(n, dtype=np.int8))
        assert (b.recv(n=n).data == np.arange(n, dtype=np.int8)).all()
        b.send(dest="A", n=n)
        assert a.recv(src="B").n == n
    sockets = [path for path in Path(a.folder).iterdir() if stat.S_ISSOCK(path.stat().st_mode)]
    assert {path.stem for path in sockets} == {a.uid, b.uid}
    assert stat.S_IMODE(os.stat(a.folder).st_mode) == 0o700
    b.close()
    assert not os.path.exists(os.path.join(a.folder, f"{b.uid}.sock"))
    with pytest.raises(PeerLost, match="'B'"):
        a.send(dest="B")


@pytest.mark.fault
def test_the_dead_are_noticed_and_swept_away(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    b = join("B")
    a = process("A", "for n in range(100): sfm.send(dest='B', n=n)\nthreading.Event().wait()")
    b.recv(n=99)
    b.send(dest="A")
    gone = member(b, "A").uid
    to_a = link(b, "A")
    wait_until(lambda: to_a.up)
    a.kill()
    with pytest.raises(PeerLost, match="'A'"):
        repeat(lambda: b.recv(src="A"))
    wait_until(lambda: to_a.lost is not None)  # the connection itself tells, too
    with sfm_kernel.join(b.world, "A"):  # takes its place
        assert not os.path.exists(os.path.join(b.folder, f"{gone}.sock"))


@pytest.mark.fault
def test_a_forked_child_keeps_no_socket(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
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


def test_who_was_not_told_to_listen_is_told_of(
    join: Callable[..., Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    a = join("A")
    monkeypatch.delenv("SFM_TRANSPORT")
    b = join("B")
    assert member(a, "B").address == ""
    with pytest.raises(SFMError, match="Give all processes of a world the same"):
        a.send(dest="B")
    b.send(dest="A", n=1)
    assert a.recv(src="B").n == 1
    assert transport(a).lines == {}


def test_without_being_asked_nothing_listens_and_zmq_is_not_imported(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
import sys, threading, psutil, sfm_kernel
with sfm_kernel.join(sys.argv[1]) as a, sfm_kernel.join(sys.argv[1]) as b:
    a.send(dest=1, n=1)
    b.recv(src=0)
    assert not psutil.Process().net_connections("all")
    assert not [one for one in threading.enumerate() if "zmq" in one.name]
assert "zmq" not in sys.modules
"""
    monkeypatch.delenv("SFM_TRANSPORT")
    subprocess.run([sys.executable, "-c", code, world], check=True)
