"""Endpoints and processes that talk over ZeroMQ, and looks into their connections."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.transport.base import Member
from sfm_kernel.transport.zmq import ZmqTransport
from sfm_kernel.transport.zmq.link import Link

PRELUDE = """
import os, signal, sys, threading, time
import sfm_kernel
from sfm_kernel import *
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
print("joined", flush=True)
"""


@pytest.fixture(autouse=True)
def over_zmq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFM_TRANSPORT", "zmq")


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
    return transport(endpoint).links[member(endpoint, name).uid]


def repeat(call: Callable[[], object]) -> None:
    """Until it raises."""
    while True:
        call()


def wait_until(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.005)
