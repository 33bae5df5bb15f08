"""The kernel's facts about a TCP connection, and its congestion control."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from sfm_kernel.errors import SFMError
from sfm_kernel.transport.tcp_info import choosable, congestion, set_congestion, tcp_info

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client, server.accept()[0] as peer:
            yield client, peer


def test_it_tells_what_has_gone_over_the_connection(pair: Pair) -> None:
    client, peer = pair
    client.sendall(bytes(1000))
    assert len(peer.recv(1000, socket.MSG_WAITALL)) == 1000
    facts = tcp_info(peer)
    assert facts["bytes_received"] == 1000
    assert tcp_info(peer.fileno())["bytes_received"] == 1000
    rtt = tcp_info(client)["rtt_s"]
    assert isinstance(rtt, float)
    assert 0 < rtt < 60
    assert tcp_info(client)["total_retrans"] == 0


def test_the_congestion_control_is_what_was_set(pair: Pair) -> None:
    client, _ = pair
    assert "reno" in choosable()
    for name in choosable():
        set_congestion(client, name)
        assert congestion(client) == name


def test_one_that_is_not_there_is_refused_with_what_is(pair: Pair) -> None:
    client, _ = pair
    before = congestion(client)
    with pytest.raises(SFMError, match=r"'nonesuch' .*: .* of: .*reno"):
        set_congestion(client, "nonesuch")
    assert congestion(client) == before


def test_a_descriptor_of_no_tcp_socket_is_refused() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as client:
        with pytest.raises(OSError):
            tcp_info(client)
        with pytest.raises(OSError):
            set_congestion(client, "reno")
    with pytest.raises(OSError):
        tcp_info(-1)
