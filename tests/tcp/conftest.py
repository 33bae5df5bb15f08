"""Endpoints and processes that talk over TCP, and looks into their connections."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel._native import Link
from sfm_kernel.transport.base import Member
from sfm_kernel.transport.tcp import TcpTransport
from tests.tcp import wire
from tests.tcp.sockets import connect

PRELUDE = """
import os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import *
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
print("joined", flush=True)
"""


@pytest.fixture(autouse=True)
def over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "tcp")


@pytest.fixture
def join(world: str) -> Iterator[Callable[..., Endpoint]]:
    """Joins the test's world in this process."""
    with contextlib.ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(sfm_kernel.join(world, *args, **kwargs))


@pytest.fixture
def process(world: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes that join as ``name`` and run ``code``; returns when they have joined."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str, code: str, **env: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + code, world, name]
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, bufsize=1, env={**os.environ, **env}
        )
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "joined\n"
        return child

    yield start
    for child in started:
        child.kill()
        with child:
            pass


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
        to, self.sender = (member(end, str(end.name)) for end in (receiver, sender))
        self.address = to.address
        self.secret = receiver._directory.key
        self.pair = wire.Pair(self.secret, self.sender.uid, to.uid, counter=1 << 40)
        self.socket = connect(to.address)
        self.listener = socket.create_server(("127.0.0.1", 0))  # accepts nobody
        self.reached_at = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self._stream, self.heard = bytearray(), list[wire.Frame]()

    def again(self) -> None:
        """On a new connection."""
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


@pytest.fixture
def impostor() -> Iterator[Callable[[Endpoint, Endpoint], Impostor]]:
    """``impostor(receiver, sender)``"""
    with contextlib.ExitStack() as stack:

        def make(receiver: Endpoint, sender: Endpoint) -> Impostor:
            made = Impostor(receiver, sender)
            stack.callback(made.close)
            return made

        yield make


def repeat(call: Callable[[], object]) -> None:
    """Until it raises."""
    while True:
        call()


def packet(**attributes: object) -> bytes:
    """A message from A to B."""
    return sfm_kernel.message.encode(dest="B", src="A", **attributes)


def unpacked(body: bytes) -> Any:
    ((message,), rest) = sfm_kernel.message.decode(body)
    assert not rest
    return message
