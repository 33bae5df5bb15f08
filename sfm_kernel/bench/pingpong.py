"""Ping-pong: what it costs to send data to another process and have it back.

The mechanisms and sizes are those of Table 2 of the SFM paper, each building on the one before:
bare sockets; pickled data over a socket; SFM packets over a socket; and ``send``/``recv`` with
their queue, through shared memory and through ZeroMQ. All run between the same two processes.

Source: Fedosov and Benson, "Communication with Super Flexible Messaging", section 5.
"""

from __future__ import annotations

import argparse
import os
import pickle
import secrets
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

import sfm_kernel
from sfm_kernel.bench.arguments import at_least
from sfm_kernel.bench.engines import START_SECONDS, answering, driving, rank_of
from sfm_kernel.bench.rows import Row, grouped
from sfm_kernel.directory import remove_world
from sfm_kernel.errors import SFMError
from sfm_kernel.message import decode, encode

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

# Table 2: mechanism -> size -> latency (µs), bandwidth (Mbit/s), on two machines of 2007.
# Its bandwidths fit 1 Mbit = 2**20 bits and one way, half a round trip (but for 128 B, where it
# seems to count the encoded bytes, too).
PAPER = {
    "sockets": {"128 B": (48, 20), "16 kB": (220, 568), "64 kB": (642, 778)},
    "pickle": {"128 B": (73, 16), "16 kB": (275, 453), "64 kB": (964, 518)},
    "SFM": {"128 B": (84, 14), "16 kB": (285, 439), "64 kB": (979, 511)},
    "SFM w/Q": {"128 B": (97, 13), "16 kB": (300, 417), "64 kB": (984, 508)},
}
MEGABIT = 2**20
WARM_UP = 10
"""Round trips before each measurement that are not counted."""

MECHANISMS = (*PAPER, "SFM w/Q zmq")

Attributes = dict[str, Any]

MESSAGES: dict[str, Attributes] = {
    "128 B": {"data": bytes(128)},
    "16 kB": {"data": bytes(16 * 1024)},
    "64 kB": {"data": bytes(64 * 1024)},
    "3 attributes": {"tag": "result", "step": 7, "data": bytes(128)},
}
"""What is sent: Table 2's character arrays, and a small message as programs send them."""


# The mechanisms. Each end sends attributes, and opens every value that it receives.


class Mechanism(Protocol):
    @property
    def route(self) -> str: ...
    def send(self, attributes: Attributes) -> None: ...
    def receive(self) -> Attributes: ...


class Sockets:
    """Bare bytes over TCP. Both ends know how many come; there is nothing but ``data``."""

    route = "tcp"

    def __init__(self, link: socket.socket, size: int) -> None:
        self.link, self.size = link, size

    def send(self, attributes: Attributes) -> None:
        self.link.sendall(attributes["data"])

    def receive(self) -> Attributes:
        return {"data": _exactly(self.link, self.size)}


class Pickle:
    """Pickled attributes over TCP, after a header with their length."""

    route = "tcp"
    header = struct.Struct("!Q")

    def __init__(self, link: socket.socket) -> None:
        self.link = link

    def send(self, attributes: Attributes) -> None:
        pickled = pickle.dumps(attributes, protocol=5)
        self.link.sendall(self.header.pack(len(pickled)) + pickled)

    def receive(self) -> Attributes:
        (size,) = self.header.unpack(_exactly(self.link, self.header.size))
        attributes: Attributes = pickle.loads(_exactly(self.link, size))
        return attributes


class Packets:
    """SFM's ``encode`` and ``decode`` over TCP, without its queue."""

    route = "tcp"

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.leftover = b""

    def send(self, attributes: Attributes) -> None:
        self.link.sendall(encode(dest=0, **attributes))

    def receive(self) -> Attributes:
        while True:
            messages, self.leftover = decode(self.leftover + _some(self.link))
            if messages:
                return _values(messages[0])


class Queue:
    """SFM as programs use it: ``send`` and ``recv``."""

    def __init__(self, sfm: Endpoint, peer: int) -> None:
        self.sfm, self.peer = sfm, peer

    @property
    def route(self) -> str:
        return self.sfm.route_kind(self.peer)

    def send(self, attributes: Attributes) -> None:
        self.sfm.send(dest=self.peer, **attributes)

    def receive(self) -> Attributes:
        return _values(self.sfm.recv(src=self.peer))


def _values(message: Message) -> Attributes:
    return {name: message[name] for name in message if name not in ("src", "dest")}


def _some(link: socket.socket, most: int = 128 * 1024) -> bytes:
    received = link.recv(most)
    if not received:
        raise ConnectionError("the other process closed its socket")
    return received


def _exactly(link: socket.socket, size: int) -> bytes:
    received = _some(link, size)
    while len(received) < size:
        received += _some(link, size - len(received))
    return received


# The two processes


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Play ping-pong as home tells, until it says 0 times. Runs on engines 0 (ping) and 1."""
    rank = rank_of(sfm)
    peer = 1 - rank
    with _tcp_link(sfm, peer) as link, _zmq_endpoint(sfm) as over_zmq:
        while True:
            job = sfm.recv(src=home if rank == 0 else 0, tag="pingpong job")
            with answering(sfm, "pingpong", job) as answer:
                if rank == 0:
                    sfm.send(dest=peer, **_values(job))
                if job.count == 0:
                    return
                attributes = MESSAGES[job.message]
                mechanisms: dict[str, Mechanism] = {
                    "sockets": Sockets(link, len(attributes["data"])),
                    "pickle": Pickle(link),
                    "SFM": Packets(link),
                    "SFM w/Q": Queue(sfm, peer),
                    "SFM w/Q zmq": Queue(over_zmq, peer),
                }
                mechanism = mechanisms[job.mechanism]
                if rank == 0:
                    answer["seconds"] = _ping(mechanism, attributes, job.count)
                    answer["route"] = mechanism.route
                else:
                    _pong(mechanism, attributes, job.count)


def _ping(mechanism: Mechanism, attributes: Attributes, count: int) -> list[float]:
    """Seconds that each of ``count`` round trips took, after some that are not counted."""
    seconds = []
    for number in range(-WARM_UP, count):
        started = time.perf_counter()
        mechanism.send(attributes)
        returned = mechanism.receive()
        if number >= 0:
            seconds.append(time.perf_counter() - started)
        elif returned != attributes:
            raise SFMError(f"{type(mechanism).__name__} returned other attributes than it was sent")
    return seconds


def _pong(mechanism: Mechanism, attributes: Attributes, count: int) -> None:
    for _ in range(WARM_UP + count):
        mechanism.receive()
        mechanism.send(attributes)


@contextmanager
def _tcp_link(sfm: Endpoint, peer: int) -> Iterator[socket.socket]:
    """A TCP connection between engines 0 and 1 of this machine, without Nagle's delay."""
    if sfm.rank == 0:
        # Pickles are opened that come from here: only who knows the token may connect.
        token = secrets.token_bytes(16)
        with socket.create_server(("127.0.0.1", 0)) as server:
            sfm.send(dest=peer, tag="tcp link", port=server.getsockname()[1], token=token)
            link = server.accept()[0]
            if not secrets.compare_digest(_exactly(link, len(token)), token):
                raise ConnectionRefusedError("a stranger connected to the ping-pong benchmark")
    else:
        invitation = sfm.recv(src=peer, tag="tcp link")
        link = socket.create_connection(("127.0.0.1", invitation.port))
        link.sendall(invitation.token)
    with link:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield link


@contextmanager
def _zmq_endpoint(sfm: Endpoint) -> Iterator[Endpoint]:
    """This process's endpoint of a second world, whose messages go through ZeroMQ."""
    world = f"{sfm.world}-zmq"
    before = os.environ.get("SFM_TRANSPORT")
    os.environ["SFM_TRANSPORT"] = "zmq"
    try:
        endpoint = sfm_kernel.join(world, rank=sfm.rank)
    finally:
        if before is None:
            del os.environ["SFM_TRANSPORT"]
        else:
            os.environ["SFM_TRANSPORT"] = before
    try:
        with endpoint:
            yield endpoint
    finally:
        remove_world(world)  # what the last to leave does


# The measurement, driven from home


def rows(
    *,
    home: Endpoint | None = None,
    messages: Sequence[str] = tuple(MESSAGES),
    repeat: int = 5,
    count: int = 500,
) -> Iterator[Row]:
    """Measure every mechanism with every message; yield a row after each measurement.

    Mechanisms are interleaved: each of ``repeat`` rounds makes ``count`` round trips with every
    one of them. Without ``home``, two local processes are started; with it (the endpoint of a
    notebook), engines 0 and 1 of its world must run ``serve(sfm)``.

    Columns: message, mechanism, route, round, latency_us and fastest_us (one way: half of a round
    trip; median and minimum), bandwidth_mbit_s (of the median, 1 Mbit = 2**20 bits).
    """
    if repeat < 1 or count < 1:
        raise ValueError(f"repeat and count must be at least 1, not {repeat} and {count}")
    with driving("pingpong", serve, 2, home, stop={"count": 0}) as ask:
        for mechanism in MECHANISMS:  # not measured: the first message opens the route
            ask(timeout=START_SECONDS, message="128 B", mechanism=mechanism, count=1)
        for number, message in product(range(repeat), messages):
            for mechanism in MECHANISMS:
                if mechanism == "sockets" and len(MESSAGES[message]) > 1:
                    continue  # bare bytes have no attributes
                done = ask(message=message, mechanism=mechanism, count=count)
                bits = 8 * len(MESSAGES[message]["data"])
                latency = median(done.seconds) / 2
                yield {
                    "message": message,
                    "mechanism": mechanism,
                    "route": done.route,
                    "round": number,
                    "latency_us": latency * 1e6,
                    "fastest_us": min(done.seconds) / 2 * 1e6,
                    "bandwidth_mbit_s": bits / latency / MEGABIT,
                }


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each message and mechanism, over all rounds; beside it, what the paper measured."""
    table = []
    for (message, mechanism), group in grouped(measured, ("message", "mechanism")).items():
        paper = PAPER.get(mechanism.removesuffix(" zmq"), {}).get(message, (None, None))
        table.append(
            {
                "message": message,
                "mechanism": mechanism,
                "route": group[0]["route"],
                "latency_us": median(row["latency_us"] for row in group),
                "fastest_us": min(row["fastest_us"] for row in group),
                "bandwidth_mbit_s": median(row["bandwidth_mbit_s"] for row in group),
                "paper_2007_us": paper[0],
                "paper_2007_mbit_s": paper[1],
            }
        )
    return table


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.bench pingpong``."""
    parser.add_argument("--engines", type=int, choices=(2,), default=2, help="always 2")
    parser.add_argument("--count", type=at_least(1), metavar="C", help="round trips a round")


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    return rows(
        repeat=options.repeat or (2 if options.quick else 5),
        count=options.count or (50 if options.quick else 1000),
    )
