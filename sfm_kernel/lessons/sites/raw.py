"""A bare TCP connection between two hosts of a lab, and what is measured on it.

    python -m sfm_kernel.lessons.sites.raw serve ADDRESS PORT       answers, until it is killed
    python -m sfm_kernel.lessons.sites.raw ask ADDRESS PORT JSON    prints a line of JSON

A request is a length and that many bytes; the answer is one byte, sent when all of them are there.
So a request that goes through at once takes one round trip and the time to send it.
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

from sfm_kernel.transport.tcp_info import congestion, set_congestion, tcp_info

_LENGTH = struct.Struct("!Q")
_ROOM = 1 << 20
WARM_BYTES = 4 << 20
"""What opens the window before a silence."""
TOLD = ("rtt_s", "snd_cwnd", "total_retrans", "total_rto", "bytes_retrans", "lost", "dsack_dups")


def serve(address: str, port: int) -> None:
    """Answer requests of any number of connections; says "ready" on standard output."""
    with socket.create_server((address, port), backlog=64) as server:
        print("ready", flush=True)
        while True:
            one, _ = server.accept()
            Thread(target=_answer, args=(one,), daemon=True).start()


def _answer(one: socket.socket) -> None:
    room = memoryview(bytearray(_ROOM))
    with one, suppress(OSError):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while header := one.recv(_LENGTH.size, socket.MSG_WAITALL):
            (left,) = _LENGTH.unpack(header)
            while left:
                left -= one.recv_into(room[: min(left, _ROOM)])
            one.sendall(b"\0")


class Asking:
    """A connection to ``serve``.

    Args:
        algorithm: its congestion control; None: as the route says.
    """

    def __init__(self, address: str, port: int, algorithm: str | None = None) -> None:
        start = time.perf_counter()
        self.socket = socket.create_connection((address, port))
        self.connect_s = time.perf_counter() - start
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if algorithm is not None:
            set_congestion(self.socket, algorithm)
        self.algorithm = congestion(self.socket)

    def ask(self, length: int) -> float:
        """Seconds until ``length`` bytes were there, and it was heard of."""
        start = time.perf_counter()
        self.socket.sendall(_LENGTH.pack(length) + bytes(length))
        self.socket.recv(1, socket.MSG_WAITALL)
        return time.perf_counter() - start

    def told(self) -> dict[str, Any]:
        """Some of what the kernel knows of the connection."""
        info = tcp_info(self.socket)
        return {"algorithm": self.algorithm} | {name: info[name] for name in TOLD}


def after_silence(
    asking: Asking, length: int, silences: list[float], count: int = 3
) -> dict[str, Any]:
    """How long ``length`` bytes take after each silence, with a window that was open before."""
    rows = []
    for silence in silences * count:
        for _ in range(3):
            asking.ask(WARM_BYTES)
        time.sleep(silence)
        window = tcp_info(asking.socket)["snd_cwnd"]
        seconds = asking.ask(length)
        rows.append({"silence_s": silence, "seconds": seconds, "cwnd_before": window})
    return {**asking.told(), "rows": rows}


def bulk(asking: Asking, length: int, count: int) -> dict[str, Any]:
    """How long ``count`` requests of ``length`` bytes take, one after the other."""
    seconds = [asking.ask(length) for _ in range(count)]
    return {**asking.told(), "connect_s": asking.connect_s, "seconds": seconds}


_JOBS: dict[str, Callable[..., dict[str, Any]]] = {"after_silence": after_silence, "bulk": bulk}


def main(arguments: list[str]) -> int:
    """See above."""
    what, address, port, *rest = arguments
    if what == "serve":
        serve(address, int(port))
    job = json.loads(rest[0])
    asking = Asking(address, int(port), job.pop("algorithm", None))
    print(json.dumps(_JOBS[job.pop("job")](asking, **job)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
