"""A stranger without the key who reaches a directory server can do nothing that others notice.

The server speaks ZeroMQ.
"""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from sfm_kernel._native import LARGEST_FRAME, MAX_MEMBERS
from sfm_kernel.directory import Client, DirectoryServer, RemoteDirectory
from sfm_kernel.errors import WorldGone
from tests.waiting import wait_until
from tests.zmq.sockets import connect, place, unread
from tests.zmq.strangers import (
    FEW,
    assert_not_taken_in,
    crowd,
    disturb,
    hung_up,
    pour,
    running,
    said,
)

pytestmark = pytest.mark.zmq

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
"""The beginning of every connection of ZeroMQ's (ZMTP 3.1)."""
KEY = bytes(range(32))


def claim(nbytes: int) -> bytes:
    """The head of a frame of ``nbytes``."""
    return b"\x06" + nbytes.to_bytes(8, "big")


@pytest.fixture
def address(world: str) -> Iterator[str]:
    """The address of a server that serves others, whatever the stranger has done."""
    with DirectoryServer(world, KEY, "tcp://127.0.0.1:0") as server:
        yield server.url
        with RemoteDirectory(world, server.url, KEY) as client:
            assert client.members() == []


def test_a_frame_without_end_is_not_taken_in(address: str) -> None:
    assert_not_taken_in(address, GREETING + claim(1 << 30))


@pytest.fixture
def fake(world: str) -> Iterator[tuple[socket.socket, Callable[[float], str]]]:
    """A stranger at a server's address; and what a client says of it after so many seconds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def join(patience: float) -> str:
            with pytest.raises(WorldGone) as gone:
                Client(
                    world, f"tcp://127.0.0.1:{listener.getsockname()[1]}/{KEY.hex()}", KEY, patience
                )
            return str(gone.value)

        yield listener, join


def test_a_connecting_client_takes_no_frame_without_end_either(
    fake: tuple[socket.socket, Callable[[float], str]],
) -> None:
    listener, join = fake
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join, 60.0)
        with listener.accept()[0] as connection:
            assert pour(connection, GREETING + claim(1 << 30)) < 64 << 20
        listener.close()
        joining.result()


def test_a_stranger_that_does_not_complete_a_handshake_is_dropped(address: str) -> None:
    with connect(address) as silent, connect(address) as slow:
        slow.sendall(GREETING)
        assert hung_up(silent) and hung_up(slow)


SERVER = """
import sys
from sfm_kernel.directory import DirectoryServer
with DirectoryServer(sys.argv[1], bytes(range(32)), "tcp://127.0.0.1:0") as server:
    print(server.url, flush=True)
    sys.stdin.read()
"""


LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({few}, {few}))" + SERVER


@pytest.mark.fault
def test_a_crowd_does_not_keep_members_from_joining(world: str) -> None:
    with running(LIMITED, world) as (server, address):
        with crowd(address):
            for _ in range(20):
                with RemoteDirectory(world, address, KEY) as client:
                    assert client.members() == []
            wait_until(lambda: psutil.Process(server.pid).num_fds() < FEW - 20)
        assert "have not shown the world's key" in said(server)


MEMORY = 32 << 20
"""Bytes that all strangers together may take of a server."""


@pytest.mark.parametrize("length", [LARGEST_FRAME, LARGEST_FRAME + 1, (2 << 20) - 1])
def test_strangers_share_little_memory(world: str, length: int) -> None:
    """Each sends a frame but for its last byte, which ZeroMQ keeps while it waits."""
    with running(SERVER, world) as (server, address):
        process, port = psutil.Process(server.pid), place(address)[1]
        before = process.memory_info().rss
        with contextlib.ExitStack() as strangers:
            for _ in range(MAX_MEMBERS):
                stranger = strangers.enter_context(connect(address))
                with contextlib.suppress(ConnectionError):  # hung up on already
                    stranger.sendall(GREETING + claim(length) + bytes(length - 1))
            wait_until(lambda: unread(port) == 0)
            assert process.memory_info().rss - before < MEMORY


# ---- strangers, and peers that are only slow -------------------------------------------------


@pytest.mark.parametrize("hangs_up", ["at once", "after a while"])
def test_a_server_without_time_for_our_key_does_not_refuse_it(
    hangs_up: str, fake: tuple[socket.socket, Callable[[float], str]]
) -> None:
    listener, join = fake
    at_once = hangs_up == "at once"
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(join, 60.0 if at_once else 10.0)
        listener.settimeout(0.1)
        while not joining.done():
            with contextlib.suppress(TimeoutError), listener.accept()[0]:
                time.sleep(0.0 if at_once else 1.0)
        assert ("is not the server with the key" in joining.result()) == at_once


# ---- noise -----------------------------------------------------------------------------------


def noise(dice: random.Random) -> bytes:
    """Bytes that a stranger might send."""
    rest = dice.randbytes(dice.randrange(400))
    kinds = [
        b"",
        dice.randbytes(1),
        GREETING[: dice.randrange(64)],
        b"GET / HTTP/1.1\r\n\r\n",
        GREETING + claim(dice.getrandbits(64)),
        GREETING + b"\x04" + bytes([min(255, len(rest))]) + b"\x05HELLO",
        GREETING.replace(b"CURVE", dice.choice([b"NULL\0", b"PLAIN"])) + b"\x04\x19\x05READY",
        bytes([dice.randrange(256)]).join([GREETING[:32], GREETING[32:]]),
    ]
    return dice.choice(kinds) + rest


def test_noise_disturbs_nobody(address: str, effort: int) -> None:
    disturb(address, noise, 100 * effort)
