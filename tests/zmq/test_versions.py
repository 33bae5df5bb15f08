"""A process that speaks another version of the wire format is told, and so are both users."""

from __future__ import annotations

import socket

import pytest

from sfm_kernel import PeerLost
from tests.zmq import wire
from tests.zmq.by_hand import Impostor
from tests.zmq.conftest import NOBODY, Join, link_to, member, transport

pytestmark = pytest.mark.zmq

FOREIGN = wire.VERSION + 1
SENTENCE = (
    f"it speaks version {FOREIGN} of the wire format, and this process version {wire.VERSION}"
)


@pytest.mark.parametrize("ends", ["fake", "far"])
def test_who_connects_is_answered_and_both_users_hear_it(
    ends: str, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    fake: Impostor = request.getfixturevalue(ends)
    fake.pair.version = FOREIGN
    fake.greet()
    header, _ = wire.split(fake.connection.receive())
    fields = wire.HEADER.unpack(header)
    assert (fields[1], fields[4]) == (ord("S"), wire.VERSION)
    assert (fields[9], fields[10]) == (
        wire.uid_bytes(fake.pair.peer),
        wire.uid_bytes(fake.pair.own),
    )
    text = ""
    while SENTENCE not in text:  # pytest's watchdog ends it
        text += capfd.readouterr().err
    assert fake.pair.own in text


def test_who_is_connected_to_is_lost_with_the_reason(fake: Impostor) -> None:
    b = fake.receiver
    link = link_to(b, fake.reached_at, public=fake.keys.public.hex())
    accepted = fake._listener.accept()
    accepted.receive()
    pair = wire.Pair(fake.secret, NOBODY, fake.pair.peer, sites=("", "there"), version=FOREIGN)
    accepted.send(pair.seal(wire.Frame(b"W")))
    while link.lost is None:
        pass
    assert SENTENCE in link.lost


def test_a_known_peer_that_comes_back_with_another_version_is_lost(fake: Impostor) -> None:
    """As after an update on one machine only."""
    b = fake.receiver
    fake.greet()
    fake.hears(b"W")
    fake.again()
    fake.pair.version = FOREIGN
    fake.greet()
    with pytest.raises(PeerLost, match=SENTENCE):
        b.recv(src="A")


def test_a_gateway_of_another_version_is_not_used(
    join: Join, capfd: pytest.CaptureFixture[str]
) -> None:
    b = join("B")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        transport(b).exchange.set_gateways([("e" * 32, member(b, "B").site, address)])
        with listener.accept()[0] as connection:
            assert wire.HEADER.unpack(connection.recv(wire.HEADER.size))[4] == wire.VERSION
            pair = wire.Pair(b"", "e" * 32, b.uid, sites=("", ""), version=FOREIGN)
            connection.sendall(pair.seal(wire.Frame(b"L")))
            while connection.recv(1 << 16):  # it hangs up
                pass
    text = ""
    while SENTENCE not in text:
        text += capfd.readouterr().err
    assert f"the gateway at {address} is not used" in text
