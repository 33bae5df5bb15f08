"""Before anybody has shown a key, libzmq has memory for a large frame.

How much of it strangers may fill is bounded: native/src/net/admission.rs tests that.
"""

from __future__ import annotations

import contextlib
import socket

import pytest

from tests.zmq.conftest import Join, member
from tests.zmq.sockets import connect
from tests.zmq.strangers import command, greeting

pytestmark = pytest.mark.zmq

LARGE = (512 << 10) - 100
"""Bytes that each sends of a command that never ends."""


def feed(stranger: socket.socket) -> None:
    """The front of a large command, as much as somebody takes."""
    with contextlib.suppress(ConnectionError, TimeoutError):
        stranger.settimeout(5)
        stranger.sendall(greeting() + command(LARGE + 50) + bytes(LARGE))


def test_members_come_in_meanwhile(join: Join) -> None:
    a = join("A")
    strangers = [connect(member(a, "A").address) for _ in range(60)]
    try:
        for stranger in strangers:
            feed(stranger)
        with_them = join("B")
        with_them.send(dest="A", data=bytes(3 << 20))
        assert len(a.recv().data) == 3 << 20
    finally:
        for stranger in strangers:
            stranger.close()
