"""Endpoints and processes that talk over ZeroMQ, and access to their connections.

Tests that play a peer by hand ask for ``by_hand``: there, direct connections are plain TCP.
"""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel._native import Link
from sfm_kernel.transport.base import Member
from sfm_kernel.transport.tcp import TcpTransport
from tests.conftest import Spawn
from tests.waiting import next_line
from tests.zmq import wire
from tests.zmq.sockets import connect

PRELUDE = """
import os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import *
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
print("joined", flush=True)
"""


@pytest.fixture(autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The transport under test."""
    if by_hand := "by_hand" in request.fixturenames:
        plain = functools.partial(TcpTransport, kind="tcp")
        monkeypatch.setattr("sfm_kernel.world.TcpTransport", plain)
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")
    return "tcp" if by_hand else "zmq"


@pytest.fixture
def by_hand() -> None:
    """The test plays a peer."""


Join = Callable[..., Endpoint]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def join(world: str) -> Iterator[Join]:
    """Joins the test's world in this process."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(sfm_kernel.join(world, *args, **kwargs))


@pytest.fixture
def process(world: str, spawn: Spawn) -> Start:
    """Starts processes that join as ``name`` and run ``code``; returns when they have joined."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}

    def start(name: str, code: str, **env: str) -> subprocess.Popen[str]:
        child = spawn(
            PRELUDE + code, world, name, env=os.environ | env, text=True, bufsize=1, **pipes
        )
        assert next_line(child) == "joined"
        return child

    return start


def transport(endpoint: Endpoint) -> TcpTransport:
    (found,) = (each for each in endpoint._transports if isinstance(each, TcpTransport))
    return found


def member(endpoint: Endpoint, name: str) -> Member:
    return next(peer for peer in endpoint.members() if peer.name == name)


def link(endpoint: Endpoint, name: str) -> Link:
    found = transport(endpoint).exchange.known(member(endpoint, name).uid)
    assert found is not None
    return found


class Impostor:
    """Sends frames to one endpoint as if they came from another, which is silent meanwhile.

    It has the world's key, and its counters begin above all that the true one uses: an older
    greeting is refused as one that was overheard.
    """

    def __init__(self, receiver: Endpoint, sender: Endpoint) -> None:
        self.receiver = receiver
        to, self.sender = (member(end, str(end.name)) for end in (receiver, sender))
        self.address = to.address
        self.secret = receiver._directory.key
        self.pair = wire.Pair(self.secret, self.sender.uid, to.uid, counter=1 << 40)
        self.socket = connect(to.address)
        self.listener = socket.create_server(("127.0.0.1", 0))  # accepts nobody
        self.reached_at = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self._stream, self.heard = bytearray(), list[wire.Frame]()

    def again(self) -> None:
        """Go on over a new connection."""
        self.socket.close()
        self.socket = connect(self.address)
        self._stream, self.heard = bytearray(), []

    def put(self, kind: bytes, number: int = 0, body: bytes = b"", flag: bool = False) -> None:
        self.socket.sendall(self.pair.seal(wire.Frame(kind, number, body, flag)))

    def greet(self, number: int = 0, again: bool = False) -> None:
        self.put(b"H", number, self.reached_at.encode(), again)

    def hears(self, kind: bytes) -> wire.Frame:
        """The next frame of this kind, on this connection; EOFError at its end."""
        self.socket.settimeout(60)
        while True:
            for frame in self.heard:
                if frame.kind == kind:
                    self.heard.remove(frame)
                    return frame
            self._stream += self._more()
            self.heard += [self.pair.open(*parts) for parts in wire.split(self._stream)]

    def is_hung_up_on(self) -> None:
        """Returns when the connection has ended."""
        with contextlib.suppress(EOFError):
            while True:
                self._more()

    def _more(self) -> bytes:
        try:
            if more := self.socket.recv(1 << 16):
                return more
        except ConnectionError:
            pass
        raise EOFError

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.put(b"B")  # or the receiver would wait for what it has not acknowledged
        self.socket.close()
        self.listener.close()


Pose = Callable[[Endpoint, Endpoint], Impostor]


@pytest.fixture
def impostor(by_hand: None) -> Iterator[Pose]:
    """``impostor(receiver, sender)``"""
    with contextlib.ExitStack() as stack:

        def make(receiver: Endpoint, sender: Endpoint) -> Impostor:
            made = Impostor(receiver, sender)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def fake(join: Join, impostor: Pose) -> Impostor:
    """An impostor that sends to B as if it were A; both have joined."""
    return impostor(join("B"), join("A"))


def repeat(call: Callable[[], object]) -> None:
    """Call until it raises."""
    while True:
        call()


def packet(**attributes: object) -> bytes:
    """A message from A to B."""
    return sfm_kernel.message.encode(dest="B", src="A", **attributes)


def unpacked(body: bytes) -> Any:
    ((message,), rest) = sfm_kernel.message.decode(body)
    assert not rest
    return message
