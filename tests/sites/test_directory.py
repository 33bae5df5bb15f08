"""The directory server sends the list of gateways to processes and gateways."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import zmq

from sfm_kernel._native import GATEWAY_KEY_BYTES
from sfm_kernel.directory import Client, DirectoryServer, RemoteDirectory
from sfm_kernel.directory.gateways import LARGEST_REQUEST, GatewayKey
from sfm_kernel.errors import BadName, WorldAccess, WorldError
from sfm_kernel.transport.base import Gateway
from tests.dealers import connect_member
from tests.sites.conftest import KEY
from tests.waiting import wait_until

pytestmark = pytest.mark.zmq


@pytest.fixture
def client(server: DirectoryServer) -> Iterator[Client]:
    with closing(Client(server.world, server.url, GatewayKey.of_world(KEY))) as opened:
        yield opened


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def enlist(client: Client, listener: socket.socket, site: str = "A", **more: object) -> Gateway:
    address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    answer = client.ask(
        "enlist", **{"uid": secrets.token_hex(16), "site": site, "address": address, **more}
    )
    return Gateway.from_json(answer["gateway"])


def test_the_text_of_a_key() -> None:
    key = GatewayKey.of_world(KEY)
    assert len(key.key) == GATEWAY_KEY_BYTES and GatewayKey.from_text(str(key)) == key
    for text in ("", "12", "x" * 64, str(key)[:-2], str(key) * 2):
        with pytest.raises(WorldError, match="SFM_GATEWAY_KEY"):
            GatewayKey.from_text(text)


def test_processes_find_gateways_until_they_die(
    client: Client, directory: RemoteDirectory, listener: socket.socket
) -> None:
    assert directory.gateways() == []
    with socket.create_server(("127.0.0.1", 0)) as other:
        gateways = [enlist(client, listener), enlist(client, other), enlist(client, other, "B")]
        assert [gateway.name for gateway in gateways] == ["A-1", "A-2", "B-1"]
        assert directory.gateways() == gateways
    wait_until(lambda: directory.gateways() == gateways[:1])


def test_a_report_is_kept_and_shown(
    client: Client, directory: RemoteDirectory, listener: socket.socket
) -> None:
    gateway = enlist(client, listener, report={"forwarded": 3})
    assert enlist(client, listener, uid=gateway.uid) == gateway
    report = directory.reports()[gateway.uid]
    assert report["forwarded"] == 3 and report["age"] >= 0
    assert directory.gateways() == [gateway]


def test_gateways_learn_little_and_may_do_little(
    client: Client, directory: RemoteDirectory, listener: socket.socket
) -> None:
    address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    member = directory.join(
        uid=secrets.token_hex(16), pid=1, host="here", segment="/secret", address=address,
        name="A", info={"secret": 1},
    )  # fmt: skip
    state = client.ask("state")
    assert state["members"] == [{"uid": member.uid, "name": "A", "site": "here"}]
    assert client.ask("state", version=state["version"]).keys() == {"version", "number"}
    for ask in ("join", "leave", "relay", "order", "answer", "snapshots", "reports"):
        with pytest.raises(WorldAccess, match=ask):
            client.ask(ask, uid=member.uid)
    assert directory.members() == [member]


def test_nobody_reports_for_another_clients_gateway(
    client: Client, server: DirectoryServer, listener: socket.socket, directory: RemoteDirectory
) -> None:
    gateway = enlist(client, listener, report={"forwarded": 3})
    with closing(Client(server.world, server.url, GatewayKey.of_world(KEY))) as other:
        with pytest.raises(WorldAccess, match="another client's"):
            enlist(other, listener, uid=gateway.uid, report={"forwarded": 4})
    assert directory.reports()[gateway.uid]["forwarded"] == 3


def test_nonsense_is_refused(client: Client, listener: socket.socket) -> None:
    for wrong in ({"uid": "12"}, {"site": ""}, {"site": "x" * 65}, {"site": 3}, {"site": "a b"}):
        with pytest.raises(BadName):
            enlist(client, listener, **wrong)
    with pytest.raises(WorldError, match="tcp://IP:port"):
        enlist(client, listener, address="nowhere")
    with pytest.raises(WorldError, match="request has at most"):
        enlist(client, listener, report={"x": "x" * LARGEST_REQUEST})


def test_a_foreign_key_does_not_open(server: DirectoryServer) -> None:
    with pytest.raises(WorldAccess, match="not the key of world"):
        Client(server.world, server.url, GatewayKey.of_world(KEY[::-1]))
    with pytest.raises(WorldAccess, match="not the key of world"):
        # It opens what gateways may ask.
        Client(server.world, server.url, GatewayKey.of_world(KEY).key)


def test_a_request_that_comes_during_a_publication_is_answered(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publishing = threading.Event()
    publish = DirectoryServer._publish

    def publish_slowly(self: DirectoryServer) -> bool:
        if any(version != self._version for version, _ in self._subscribers.values()):
            publishing.set()
            time.sleep(0.3)  # changes made now are there before anything is sent
        return publish(self)

    monkeypatch.setattr(DirectoryServer, "_publish", publish_slowly)
    with (
        DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as server,
        closing(Client(world, server.url, KEY)) as asking,
        zmq.Context() as context,
        context.socket(zmq.DEALER) as subscriber,
    ):
        subscriber.linger = 0
        connect_member(subscriber, server.url, KEY)
        subscriber.send(b'{"number": null, "ask": "subscribe"}')
        publishing.wait()
        assert asking.ask("hello")["world"] == world
