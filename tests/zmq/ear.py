"""Somebody between two peers, who keeps what they say, and says it again."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator

from tests.zmq.sockets import connect

GREETING = 64
"""Bytes of ZeroMQ's greeting, which frames follow."""


class Ear:
    """Sits between two peers.

    Attributes:
        address: the peer that connects finds it there.
        said: for each connection, what has come from the one that connects, and from the other.
        ended: the number of connections that are over.
        recites: if set, who connects hears this, and the other peer is left out.
    """

    def __init__(self, to: str) -> None:
        self._to, self.recites, self.ended = to, b"", 0
        self.said: list[tuple[bytearray, bytearray]] = []
        self._again = [b"", b""]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def say_again(self, side: int, words: bytes) -> None:
        """Put words of the one that connects (0) or of the other (1) on the living connection."""
        self._again[side] = words

    def _run(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError, ConnectionError):
                with self._listener.accept()[0] as client:
                    try:
                        self._attend(client)
                    finally:
                        self.ended += 1

    def _attend(self, client: socket.socket) -> None:
        if self.recites:
            client.sendall(self.recites)
            while not self._over.is_set():
                if ready(client) and not client.recv(1 << 16):
                    return
        with connect(self._to) as server:
            self.said.append((bytearray(), bytearray()))
            ends = (client, server)
            while not self._over.is_set():
                for side in range(2):
                    if words := self._again[side]:
                        self._again[side] = b""
                        ends[1 - side].sendall(words)
                for source in ready(*ends):
                    if not (words := source.recv(1 << 16)):
                        return
                    side = ends.index(source)
                    self.said[-1][side].extend(words)
                    ends[1 - side].sendall(words)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()


def frames(said: bytes) -> Iterator[bytes]:
    """ZeroMQ's frames (RFC 23) in what one side of a connection has said, without its greeting."""
    at = GREETING
    while at < len(said):
        head = 9 if said[at] & 2 else 2
        end = at + head + int.from_bytes(said[at + 1 : at + head])
        yield said[at:end]
        at = end


def ready(*sockets: socket.socket) -> list[socket.socket]:
    """Those that have something, within 50 ms. (Not select: descriptors may have large numbers.)"""
    poller = select.poll()
    for sock in sockets:
        poller.register(sock, select.POLLIN)
    found = {fd for fd, _ in poller.poll(50)}
    return [sock for sock in sockets if sock.fileno() in found]
