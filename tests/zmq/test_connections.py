"""Who may connect, and what connections cost."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, EndpointClosed, PeerLost, WorldAccess, WorldError
from sfm_kernel._native import Inbox, ZmqSender
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.transport.zmq import ZmqTransport
from tests.zmq.conftest import member, repeat, transport, wait_until

pytestmark = pytest.mark.zmq


# ---- keys ------------------------------------------------------------------------------------


def test_a_stranger_is_refused(join: Callable[..., Endpoint], world: str) -> None:
    a = join("A")
    with sfm_kernel.join(world + "-2", "stranger") as stranger:
        route = transport(stranger).route(member(a, "A"), lambda: True)
        assert route is not None
        packet = sfm_kernel.message.pack({"dest": "A", "src": "stranger", "evil": True})
        route.send(packet, 1 << 20)  # waits in the outbox for a connection
        with pytest.raises(PeerLost, match="key"):
            repeat(lambda: route.send(packet, 0))
    assert not a.peek()


def test_no_transport_without_a_secret() -> None:
    for key in (b"", b"short"):
        with pytest.raises(WorldAccess):
            ZmqTransport(Inbox(None), key, "0" * 32)


def test_what_is_meant_for_a_former_owner_of_the_port_is_dropped(
    join: Callable[..., Endpoint],
) -> None:
    a, b = join("A"), join("B")
    dead = "d" * 32
    former = transport(a).exchange.link(dead, member(a, "B").address)
    packet = sfm_kernel.message.pack({"dest": "dead", "src": "A", "n": 1})
    ZmqSender(former, "dead", "A", lambda: None).send(packet, 1 << 20)
    wait_until(lambda: former.up)
    a.send(dest="B", n=2)
    assert b.recv().n == 2
    assert not b.peek()


def test_without_encryption_a_stranger_is_refused_as_well(
    join: Callable[..., Endpoint], world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_ZMQ_CURVE", "0")
    a, b = join("A"), join("B")
    a.send(dest="B", n=1)
    assert b.recv(src="A").n == 1
    with sfm_kernel.join(world + "-2", "stranger") as stranger:
        route = transport(stranger).route(member(a, "A"), lambda: True)
        assert route is not None
        packet = sfm_kernel.message.pack({"dest": "A", "src": "stranger", "evil": True})
        with pytest.raises(PeerLost, match="key"):
            repeat(lambda: route.send(packet, 0))
    assert not a.peek()


def test_encryption_between_machines_cannot_be_switched_off(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DirectoryServer(world, bytes(range(32)), "tcp://127.0.0.1:0") as server:
        monkeypatch.setenv("SFM_ZMQ_CURVE", "0")
        with pytest.raises(WorldError, match="one machine"):
            sfm_kernel.join(world, "A", directory=server.url, key=server.key)


# ---- what it costs ---------------------------------------------------------------------------


def test_what_was_sent_before_closing_arrives(
    join: Callable[..., Endpoint], process: Callable[..., subprocess.Popen[str]]
) -> None:
    b = join("B")
    a = process(
        "A", "for n in range(50): sfm.send(dest='B', n=n, data=bytes(100_000))\nsfm.close()"
    )
    assert a.wait() == 0
    assert [b.recv().n for _ in range(50)] == list(range(50))


def test_closing_both_sides_at_once(world: str) -> None:
    a, b = sfm_kernel.join(world, "A"), sfm_kernel.join(world, "B")
    for n in range(10):
        a.send(dest="B", n=n)
        b.send(dest="A", n=n)
    threads = [threading.Thread(target=one.close) for one in (a, b)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_call_that_is_blocked_while_the_own_endpoint_closes(
    join: Callable[..., Endpoint],
) -> None:
    a, _ = join("A", buffering=1000), join("B")
    a.send(dest="B", data=bytes(1000))
    threading.Timer(0.1, a.close).start()
    with pytest.raises((EndpointClosed, PeerLost)):
        a.send(dest="B", data=bytes(1000))


def test_nothing_stays_open(world: str) -> None:
    def once() -> int:
        with sfm_kernel.join(world, "A") as a, sfm_kernel.join(world, "B") as b:
            for n in range(3):
                a.send(dest="B", n=n, data=bytes(200_000))
                b.recv()
        gc.collect()  # an endpoint and its network thread's callbacks refer to each other
        return len(os.listdir("/proc/self/fd"))

    first = once()  # pyzmq's own thread for buffers without copies has come
    threads = threading.active_count()
    for _ in range(3):
        assert once() <= first
    assert threading.active_count() <= threads


def test_zmq_is_not_imported_before_it_is_needed(world: str) -> None:
    code = """
import sys, sfm_kernel
with sfm_kernel.join(sys.argv[1]) as a, sfm_kernel.join(sys.argv[1]) as b:
    a.send(dest=1, n=1)
    b.recv(src=0)
assert "zmq" not in sys.modules
"""
    env = {**os.environ, "SFM_TRANSPORT": "shm"}
    subprocess.run([sys.executable, "-c", code, world], check=True, env=env)
