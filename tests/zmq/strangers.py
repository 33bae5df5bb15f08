"""Strangers: people who reach an address and have no key."""

from __future__ import annotations

import contextlib
import random
import secrets
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import psutil

from tests.zmq.ear import GREETING
from tests.zmq.sockets import connect, place

LONGER_THAN_ALLOWED = 25.0
"""Seconds. A peer that has not shown the key after 3 is hung up on."""
FEW = 128
"""Descriptors of the process that is attacked."""
CROWD = 200


def greeting(mechanism: bytes = b"CURVE", version: int = 3, magic: bytes = b"\xff") -> bytes:
    """What ZeroMQ says first on a connection (RFC 23)."""
    head = magic + bytes(8) + b"\x7f" + bytes([version, 0])
    return (head + mechanism.ljust(20, b"\0")).ljust(GREETING, b"\0")


def command(nbytes: int) -> bytes:
    """The head of a command with so many bytes, which follow or do not."""
    return b"\x04" + bytes([nbytes]) if nbytes < 256 else b"\x06" + nbytes.to_bytes(8)


def pour(connection: socket.socket, begin: bytes) -> int:
    """Send until the other end hangs up, 256 MB at most; return the number of bytes sent."""
    connection.sendall(begin)
    chunk, sent = bytes(1 << 20), 0
    with contextlib.suppress(ConnectionError):
        while sent < 256 << 20:
            sent += connection.send(chunk)
    return sent


def assert_not_taken_in(address: str, begin: bytes) -> None:
    """A frame without end that begins so is cut off, and takes little memory of this process."""
    process = psutil.Process()
    before = process.memory_info().rss
    with connect(address) as stranger:
        assert pour(stranger, begin) < 64 << 20
    assert process.memory_info().rss - before < 64 << 20


def hung_up(connection: socket.socket) -> bool:
    """Wait for the end of a connection."""
    connection.settimeout(LONGER_THAN_ALLOWED)
    try:
        while connection.recv(4096):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@contextlib.contextmanager
def running(code: str, world: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process with ``FEW`` descriptors, and the address that it says it has."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code.format(few=FEW), world]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextlib.contextmanager
def crowd(address: str) -> Iterator[list[socket.socket]]:
    """Silent connections; until the end, each that is closed is made again."""
    silent: list[socket.socket] = []
    over = threading.Event()

    def silent_connection() -> socket.socket:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(place(address))
        return connection

    def come_again() -> None:
        while not over.is_set():
            poller = select.poll()  # descriptors may have large numbers here
            for connection in silent:
                poller.register(connection, select.POLLIN)
            readable = {fd for fd, _ in poller.poll(50)}
            for nth, connection in enumerate(silent):
                if connection.fileno() in readable:
                    try:
                        gone = not connection.recv(4096)
                    except OSError:
                        gone = True
                    if gone:
                        connection.close()
                        silent[nth] = silent_connection()

    silent += [silent_connection() for _ in range(CROWD)]
    thread = threading.Thread(target=come_again)
    thread.start()
    try:
        yield silent
    finally:
        over.set()
        thread.join()
        for connection in silent:
            connection.close()


def disturb(address: str, noise: Callable[[random.Random], bytes], times: int) -> None:
    """Connect again and again, send the bytes of ``noise``, and sometimes wait for an answer."""
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    for _ in range(times):
        with connect(address) as stranger, contextlib.suppress(ConnectionError):
            stranger.sendall(noise(dice))
            if dice.random() < 0.2:
                stranger.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    stranger.recv(100)


def said(process: subprocess.Popen[str]) -> str:
    process.kill()
    assert process.stderr is not None
    return process.stderr.read()
