"""Mechanisms that send values to another process, each used as its users would use it.

A mechanism gives three functions for a message: ``send()``, ``receive()``, and
``opened(received)``, which reads every value. They are the calls of an ordinary program, with as
little around them as Python allows (``partial`` and ``attrgetter`` run no Python), since small
messages take a microsecond.
"""

from __future__ import annotations

import pickle
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.pingpong.messages import Attributes, attributes_of, same
from sfm_kernel.message import decode, encode

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint


class Calls(NamedTuple):
    """The calls for one message of a mechanism, at one end."""

    send: Callable[[], object]
    receive: Callable[[], Any]
    opened: Callable[[Any], Any]
    """A received message -> its only value, or a tuple of its values."""


class Mechanism(Protocol):
    """One end of a connection between two processes."""

    @property
    def route(self) -> str:
        """The kind of channel that carries the messages."""
        ...

    def calls(self, attributes: Attributes) -> Calls: ...


def itself(value: Any) -> Any:
    """The value unchanged: ``opened`` of a mechanism without attributes."""
    return value


def from_dict(attributes: Attributes) -> Callable[[Any], Any]:
    """Opens a dict that has these attributes."""
    return itemgetter(*attributes)


# The two ends of a measurement


def ping(mechanism: Mechanism, message: str, count: int, warm_up: int) -> list[float]:
    """Seconds of each of ``count`` round trips, after ``warm_up`` that are not counted.

    Raises:
        SFMError: the returned values differ from those sent.
    """
    send, receive, opened = mechanism.calls(attributes_of(message))
    clock = time.perf_counter
    for _ in range(warm_up):
        send()
        if not same(opened(receive()), message):
            raise SFMError(f"{type(mechanism).__name__} returned other values than it was sent")
    seconds = []
    for _ in range(count):
        started = clock()
        send()
        opened(receive())
        seconds.append(clock() - started)
    return seconds


def pong(mechanism: Mechanism, message: str, count: int, warm_up: int) -> None:
    """The other end: send back all messages of ``ping``."""
    send, receive, opened = mechanism.calls(attributes_of(message))
    for _ in range(warm_up + count):
        opened(receive())
        send()


# Sockets, with Python's pickle and as in the paper's programs


def receive_exactly(link: socket.socket, size: int) -> bytes:
    """The next ``size`` bytes."""
    received = link.recv(size, socket.MSG_WAITALL)
    if len(received) < size:
        raise ConnectionError("the other process closed its socket")
    return received


class Sockets:
    """Bare data, TCP or Unix. Both ends know the size; ``data`` is the only attribute."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.route = "unix" if link.family == socket.AF_UNIX else "tcp"

    def calls(self, attributes: Attributes) -> Calls:
        data = attributes["data"]
        send = partial(self.link.sendall, data)
        if isinstance(data, bytes):
            return Calls(send, partial(receive_exactly, self.link, len(data)), itself)
        return Calls(send, partial(self._array, data.shape, data.dtype), itself)

    def _array(self, shape: tuple[int, ...], dtype: Any) -> Any:
        import numpy as np

        array: Any = np.empty(shape, dtype)
        if self.link.recv_into(array, 0, socket.MSG_WAITALL) < array.nbytes:
            raise ConnectionError("the other process closed its socket")
        return array


class Pickle:
    """Pickled attributes over a socket, after a header with their length."""

    header = struct.Struct("!Q")

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.route = "unix" if link.family == socket.AF_UNIX else "tcp"

    def calls(self, attributes: Attributes) -> Calls:
        return Calls(partial(self._send, attributes), self._receive, from_dict(attributes))

    def _send(self, attributes: Attributes) -> None:
        pickled = pickle.dumps(attributes, protocol=5)
        self.link.sendall(self.header.pack(len(pickled)) + pickled)

    def _receive(self) -> Any:
        (size,) = self.header.unpack(receive_exactly(self.link, self.header.size))
        return pickle.loads(receive_exactly(self.link, size))


class Pipe:
    """``multiprocessing.Pipe``: a Unix socket with Python's framing and pickling."""

    route = "unix"

    def __init__(self, link: Connection) -> None:
        self.link = link

    def calls(self, attributes: Attributes) -> Calls:
        return Calls(partial(self.link.send, attributes), self.link.recv, from_dict(attributes))


# SFM


class Packets:
    """SFM's ``encode`` and ``decode`` over TCP, without its queue."""

    route = "tcp"
    most = 128 << 10

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.leftover = b""

    def calls(self, attributes: Attributes) -> Calls:
        return Calls(partial(self._send, attributes), self._receive, attrgetter(*attributes))

    def _send(self, attributes: Attributes) -> None:
        self.link.sendall(encode(dest=0, **attributes))

    def _receive(self) -> Any:
        while True:
            chunk = self.link.recv(self.most)
            if not chunk:
                raise ConnectionError("the other process closed its socket")
            messages, self.leftover = decode(self.leftover + chunk)
            if messages:
                return messages[0]


class Queue:
    """SFM as programs use it: ``send`` and ``recv``."""

    def __init__(self, sfm: Endpoint, peer: int) -> None:
        self.sfm, self.peer = sfm, peer

    @property
    def route(self) -> str:
        return self.sfm.route_kind(self.peer)

    def calls(self, attributes: Attributes) -> Calls:
        send, recv, peer = self.sfm.send, self.sfm.recv, self.peer
        # Calls as programs write them, with the attributes' names in the source.
        match attributes:
            case {"tag": tag, "step": step, "data": data}:
                call = lambda: send(dest=peer, tag=tag, step=step, data=data)  # noqa: E731
            case {"data": data}:
                call = lambda: send(dest=peer, data=data)  # noqa: E731
            case _:
                call = partial(send, dest=peer, **attributes)
        return Calls(call, lambda: recv(src=peer), attrgetter(*attributes))
