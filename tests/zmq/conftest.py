"""Endpoints and processes that talk over ZeroMQ, and looks into their connections."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel._native import Link
from sfm_kernel.transport.base import Member
from sfm_kernel.transport.zmq import ZmqTransport
from sfm_kernel.transport.zmq.curve import Keys
from sfm_kernel.transport.zmq.line import Line

PRELUDE = """
import os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import *
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
print("joined", flush=True)
"""


@pytest.fixture(autouse=True)
def over_zmq(monkeypatch: pytest.MonkeyPatch) -> None:
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
        one = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, bufsize=1, env={**os.environ, **env}
        )
        started.append(one)
        assert one.stdout is not None
        assert one.stdout.readline() == "joined\n"
        return one

    yield start
    for one in started:
        one.kill()
        with one:
            pass


def transport(endpoint: Endpoint) -> ZmqTransport:
    (found,) = (one for one in endpoint._transports if isinstance(one, ZmqTransport))
    return found


def member(endpoint: Endpoint, name: str) -> Member:
    return next(one for one in endpoint.members() if one.name == name)


def link(endpoint: Endpoint, name: str) -> Link:
    found = transport(endpoint).exchange.known(member(endpoint, name).uid)
    assert found is not None
    return found


def line(endpoint: Endpoint, name: str) -> Line:
    return transport(endpoint).lines[member(endpoint, name).uid]


class Impostor:
    """Sends frames to one endpoint as if they came from another, which is silent meanwhile."""

    header = struct.Struct("<c?16s16sQ14x")  # native/src/zmq/wire.rs

    def __init__(self, receiver: Endpoint, sender: Endpoint) -> None:
        to, self.sender = (member(one, str(one.name)) for one in (receiver, sender))
        self._ends = [bytes.fromhex(one.uid)[::-1] for one in (self.sender, to)]
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        Keys(transport(receiver).key, b"sfm peer").connect(self._dealer)
        self._dealer.connect(to.address)

    def put(self, kind: bytes, number: int, body: bytes = b"", flag: bool = False) -> None:
        self.put_frames(self.header.pack(kind, flag, *self._ends, number) + body)

    def put_frames(self, *frames: bytes) -> None:
        self._dealer.send_multipart(frames)

    def greet(self, number: int = 0) -> None:
        self.put(b"G", number, self.sender.address.encode())

    def close(self) -> None:
        self._dealer.close(0)
        self._context.term()


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


def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.005)
