"""Endpoints and processes that talk over ZeroMQ, and access to their connections."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel._native import Link
from sfm_kernel.directory import Member
from sfm_kernel.transport.keys import KeyPair
from sfm_kernel.transport.zmq import ZmqTransport
from tests.conftest import Spawn
from tests.waiting import next_line
from tests.zmq.by_hand import Impostor

PRELUDE = """
import os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import *
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
print("joined", flush=True)
"""


@pytest.fixture(autouse=True)
def _zmq(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on one machine; and nobody connects before something is sent, except to be tested."""
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")
    monkeypatch.setattr("sfm_kernel.transport.zmq.MOST_MET", 0)


NOBODY = "d" * 32
"""A uid that no member has."""

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


def transport(endpoint: Endpoint) -> ZmqTransport:
    (found,) = (each for each in endpoint._transports if isinstance(each, ZmqTransport))
    return found


def member(endpoint: Endpoint, name: str) -> Member:
    return next(peer for peer in endpoint.members() if peer.name == name)


def link(endpoint: Endpoint, name: str) -> Link:
    found = transport(endpoint).exchange.known(member(endpoint, name).uid)
    assert found is not None
    return found


def link_to(
    endpoint: Endpoint, address: str, *, uid: str = NOBODY, site: str = "", public: str = ""
) -> Link:
    """A link to a process that the directory does not list there: with this key, or a fresh one."""
    exchange = transport(endpoint).exchange
    exchange.announce([(uid, public or KeyPair.fresh().public.hex())])
    return exchange.link(uid, address, site)


Pose = Callable[..., Impostor]


@pytest.fixture
def impostor() -> Iterator[Pose]:
    """``impostor(receiver, sender)``; also with a ``site``."""
    with contextlib.ExitStack() as stack:

        def make(receiver: Endpoint, sender: Endpoint, site: str | None = None) -> Impostor:
            made = Impostor(receiver, member(receiver, str(receiver.name)), sender, site)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def fake(join: Join, impostor: Pose) -> Impostor:
    """An impostor that sends to B as if it were A; both have joined."""
    return impostor(join("B"), join("A"))


@pytest.fixture
def far(join: Join, impostor: Pose) -> Impostor:
    """The same, and A claims to be of another site: what it sends is sealed."""
    return impostor(join("B"), join("A"), "elsewhere")


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
