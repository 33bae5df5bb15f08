"""The keys of the directory server and of its clients: who may ask it, and in whose name."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
import zmq
from zmq.utils.monitor import parse_monitor_message

from sfm_kernel._native import stretched
from sfm_kernel.directory import Client, DirectoryServer, RemoteDirectory, clients
from sfm_kernel.directory.gateways import GatewayKey
from sfm_kernel.errors import WorldAccess, WorldError, WorldGone
from sfm_kernel.transport.keys import KeyPair
from tests.dealers import connect, connect_newcomer, place, public_half
from tests.unit.machines import KEY, MakeMachine

pytestmark = pytest.mark.zmq


def test_an_address_without_its_key_is_refused(server: DirectoryServer) -> None:
    place, _, digits = server.url.rpartition("/")
    with pytest.raises(WorldError, match="lacks the directory server's public key: copy all"):
        RemoteDirectory(server.world, place, KEY)
    with pytest.raises(WorldError, match="no address"):
        RemoteDirectory(server.world, f"{place}/{digits[:-1]}", KEY)


def test_each_server_has_a_key_of_its_own(server: DirectoryServer) -> None:
    with DirectoryServer(server.world, KEY, "tcp://127.0.0.1:0") as other:
        assert public_half(other.url) != public_half(server.url)
        mistaken = f"{place(server.url)}/{public_half(other.url).hex()}"
        with pytest.raises(WorldGone, match="is not the server with the key"):
            RemoteDirectory(server.world, mistaken, KEY)


def test_a_client_with_only_the_servers_public_key_is_refused(
    server: DirectoryServer, dealer: zmq.Socket[bytes]
) -> None:
    monitor = dealer.get_monitor_socket(zmq.Event.HANDSHAKE_FAILED_AUTH)
    connect(dealer, server.url, KeyPair.fresh())
    assert monitor.poll(20_000)  # the ZAP handler's no
    monitor.close()


def test_who_has_shown_the_worlds_key_may_only_say_hello(
    server: DirectoryServer, dealer: zmq.Socket[bytes]
) -> None:
    connect_newcomer(dealer, server.url, KEY)
    for request in (
        {"ask": "state"},
        {"ask": "leave", "uid": "0" * 32},
        {"ask": "hello", "public": "12"},
        {"ask": "hello"},
    ):
        dealer.send(json.dumps({"number": 1} | request).encode())
        answer = json.loads(dealer.recv())
        assert answer["error"] in ("WorldAccess", "WorldError") and answer.keys() == {
            "number",
            "error",
            "message",
        }


def test_a_public_key_that_was_overheard_is_useless(
    machine: MakeMachine, server: DirectoryServer, dealer: zmq.Socket[bytes]
) -> None:
    member = machine().join(name="A")
    pair = KeyPair(KeyPair.fresh().secret, bytes.fromhex(member.public))
    monitor = dealer.get_monitor_socket(zmq.Event.HANDSHAKE_SUCCEEDED | zmq.Event.DISCONNECTED)
    connect(dealer, server.url, pair)
    assert monitor.poll(20_000)
    assert parse_monitor_message(monitor.recv_multipart())["event"] == zmq.Event.DISCONNECTED
    monitor.close()


def test_each_member_is_announced_with_a_key_of_its_own(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    a, b = here.join(name="A"), there.join(name="B")
    assert a.public == here.directory.pair.public.hex() != b.public
    assert [member.public for member in here.directory.members()] == [a.public, b.public]


def test_nobody_joins_with_anothers_key(machine: MakeMachine, server: DirectoryServer) -> None:
    here, there = machine(), machine()
    member = here.join(name="A")
    request = {**member.to_json(), "uid": "0" * 32, "name": "B", "rank": None}
    del request["slot"]
    for public in (member.public, "", "00" * 32):
        with pytest.raises(WorldAccess, match="its own connection"):
            there.directory.client.ask("join", request=request | {"public": public})
    assert here.directory.members() == [member]


def test_a_member_does_not_leave_in_anothers_name(machine: MakeMachine) -> None:
    here, there = machine(), machine()
    member = there.join(name="A")
    with pytest.raises(WorldAccess, match="'A' lives: it leaves by itself"):
        here.directory.leave(member)
    assert here.directory.members() == [member]
    there.processes[0].die()
    here.directory.leave(member)  # nobody else would remove a process that was killed
    assert here.directory.members() == []


def test_a_client_that_nobody_knows_any_longer_is_told(
    server: DirectoryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "MOST", 2)
    first, second = (Client(server.world, server.url, KEY) for _ in range(2))
    first.ask("state")
    third = Client(server.world, server.url, KEY)  # the second has asked nothing yet
    first.ask("state")
    with pytest.raises(WorldAccess, match="key"):
        second.ask("state")
    for client in (first, second, third):
        client.close()


def test_a_short_key_is_stretched_wherever_it_comes_in(world: str) -> None:
    short = b"sixteen letters!"
    with DirectoryServer(world, short, "tcp://127.0.0.1:0") as server:
        assert server.key == stretched(short) != short and len(server.key) == 32
        for key in (short, server.key):  # as it was given, or as others get it
            with closing(Client(world, server.url, key)) as client:
                assert client.key == server.key
        for gateway in map(GatewayKey.of_world, (short, server.key)):
            with closing(Client(world, server.url, gateway)) as client:
                assert client.ask("state")["gateways"] == []
        with closing(Client(world, server.url, short)) as client:
            client.ask("rekey", key=b"another one, short".hex())
        with closing(Client(world, server.url, b"another one, short")):
            pass
    assert stretched(bytes(32)) == bytes(32)
    with pytest.raises(WorldAccess):
        stretched(bytes(15))
