"""A bare TCP connection between two hosts of a lab, and measurements on it.

    python -m sfm_kernel.lessons.sites.raw serve ADDRESS PORT       answers, until it is killed
    python -m sfm_kernel.lessons.sites.raw ask ADDRESS PORT JSON    prints a line of JSON

A request is a length and that many bytes; the answer is one byte, sent when all bytes have arrived.
So a request that TCP sends at once takes one round trip and the time to send it.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

from sfm_kernel.transport.tcp_info import congestion, tcp_info

_LENGTH = struct.Struct("!Q")
_ROOM = 1 << 20
WARM_BYTES = 4 << 20
"""Bytes sent before a silence to open the window."""
REPORTED = (
    "rtt_s", "snd_cwnd", "total_retrans", "total_rto", "bytes_retrans", "lost", "dsack_dups",
)  # fmt: skip


def serve(address: str, port: int) -> None:
    """Answer requests of any number of connections; says "ready" on standard output."""
    with socket.create_server((address, port), backlog=64) as server:
        print("ready", flush=True)
        while True:
            connection, _ = server.accept()
            Thread(target=_answer, args=(connection,), daemon=True).start()


def _answer(connection: socket.socket) -> None:
    room = memoryview(bytearray(_ROOM))
    with connection, suppress(OSError):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := connection.recv(_LENGTH.size, socket.MSG_WAITALL):
            (remaining,) = _LENGTH.unpack(header)
            while remaining:
                remaining -= connection.recv_into(room[: min(remaining, _ROOM)])
            connection.sendall(b"\0")


class Asking:
    """A connection to ``serve``; the route has chosen its congestion control."""

    def __init__(self, address: str, port: int) -> None:
        start = time.perf_counter()
        self.socket = socket.create_connection((address, port))
        self.connect_s = time.perf_counter() - start
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.algorithm = congestion(self.socket)

    def ask(self, length: int) -> float:
        """Send ``length`` bytes; return the seconds until their answer."""
        start = time.perf_counter()
        self.socket.sendall(_LENGTH.pack(length) + bytes(length))
        self.socket.recv(1, socket.MSG_WAITALL)
        return time.perf_counter() - start

    def report(self) -> dict[str, Any]:
        """Some of the kernel's facts about the connection."""
        info = tcp_info(self.socket)
        return {"algorithm": self.algorithm} | {name: info[name] for name in REPORTED}


def after_silence(
    asking: Asking, length: int, silences: list[float], count: int = 3
) -> dict[str, Any]:
    """The time of ``length`` bytes after each silence, with a window that was open before."""
    rows = []
    for silence in silences * count:
        for _ in range(3):
            asking.ask(WARM_BYTES)
        time.sleep(silence)
        window = tcp_info(asking.socket)["snd_cwnd"]
        seconds = asking.ask(length)
        rows.append({"silence_s": silence, "seconds": seconds, "cwnd_before": window})
    return {**asking.report(), "rows": rows}


def bulk(asking: Asking, length: int, count: int) -> dict[str, Any]:
    """The times of ``count`` requests of ``length`` bytes, one after the other."""
    seconds = [asking.ask(length) for _ in range(count)]
    return {**asking.report(), "connect_s": asking.connect_s, "seconds": seconds}


_JOBS: dict[str, Callable[..., dict[str, Any]]] = {"after_silence": after_silence, "bulk": bulk}


def main(arguments: list[str]) -> int:
    """Serve, or do one job and print its result."""
    command, address, port, *rest = arguments
    if command == "serve":
        serve(address, int(port))
    job = json.loads(rest[0])
    asking = Asking(address, int(port))
    print(json.dumps(_JOBS[job.pop("job")](asking, **job)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
