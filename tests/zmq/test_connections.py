"""The peers that may connect, and the cost of connections."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, EndpointClosed, PeerLost, WorldAccess
from sfm_kernel._native import Channel, Inbox
from sfm_kernel.directory import DirectoryServer
from sfm_kernel.transport.keys import KeyPair
from sfm_kernel.transport.zmq import ZmqTransport
from tests.waiting import wait_until
from tests.zmq.conftest import Join, Start, link_to, member, transport
from tests.zmq.sockets import listening

pytestmark = pytest.mark.zmq


# ---- keys ------------------------------------------------------------------------------------


def test_a_stranger_is_refused(join: Join, world: str) -> None:
    a = join("A")
    with sfm_kernel.join(world + "-2", "stranger") as stranger:
        route = transport(stranger).route(member(a, "A"), lambda: True)
        assert route is not None
        packet = sfm_kernel.message.pack({"dest": "A", "src": "stranger", "evil": True})
        route.channel.send(packet, 1 << 20)  # waits in the outbox for a connection
        wait_until(lambda: transport(stranger).silence(member(a, "A")) is not None)
    assert not a.peek()


def test_no_transport_without_a_secret() -> None:
    for key in (b"", b"short"):
        with pytest.raises(WorldAccess):
            ZmqTransport(Inbox(None), key, KeyPair.fresh(), "0" * 32)


def test_messages_for_a_former_owner_of_the_port_are_not_taken_in(join: Join) -> None:
    a, b = join("A"), join("B")
    former = link_to(a, member(a, "B").address)
    packet = sfm_kernel.message.pack({"dest": "dead", "src": "A", "n": 1})
    Channel.link(former, "dead", "A", lambda: None).send(packet, 1 << 20)
    wait_until(lambda: former.lost is not None)
    a.send(dest="B", n=2)
    assert b.recv().n == 2
    assert not b.peek()


# ---- what it costs ---------------------------------------------------------------------------


def test_messages_sent_before_closing_arrive(join: Join, process: Start) -> None:
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
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(Endpoint.close, (a, b)))


def test_a_call_that_is_blocked_while_its_endpoint_closes(join: Join) -> None:
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
        gc.collect()  # an endpoint and its callbacks refer to each other
        return len(os.listdir("/proc/self/fd"))

    first = once()
    threads = threading.active_count()
    for _ in range(3):
        assert once() <= first
    assert threading.active_count() <= threads


# ---- where others reach it -------------------------------------------------------------------


@pytest.mark.parametrize("ip", ["127.0.0.2", "192.0.2.7"])
def test_it_listens_on_the_address_that_it_announces(
    ip: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """192.0.2.7 is no machine's: a router in front of this one has it, and leads to any of ours."""
    before = set(listening())
    monkeypatch.setenv("SFM_HOST_IP", ip)
    with DirectoryServer(world, bytes(range(32))) as server:
        assert server.url.startswith(f"tcp://{ip}:")
        url = server.url.replace("192.0.2.7", "127.0.0.1")
        with sfm_kernel.join(world, "A", directory=url, key=server.key) as a:
            assert member(a, "A").address.startswith(f"tcp://{ip}:")
            assert set(listening()) - before == {ip if ip.startswith("127") else "0.0.0.0"}
