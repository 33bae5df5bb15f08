"""Ways to send values to another process, each used as its own users would use it.

A mechanism gives three functions for a message: ``send()``, ``receive()``, and
``opened(received)``, which reads every value. They are what a program would call, with as little
around them as Python allows (``partial`` and ``attrgetter`` run no Python), since small messages
take a microsecond.
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


class Way(NamedTuple):
    """A message's way through a mechanism, at one end."""

    send: Callable[[], object]
    receive: Callable[[], Any]
    opened: Callable[[Any], Any]
    """What was received -> its only value, or a tuple of its values."""


class Mechanism(Protocol):
    """One end of a connection between two processes."""

    @property
    def route(self) -> str:
        """What carries the messages."""
        ...

    def way(self, attributes: Attributes) -> Way: ...


def itself(value: Any) -> Any:
    """For what needs no opening."""
    return value


def from_dict(attributes: Attributes) -> Callable[[Any], Any]:
    """Opens a dict that has these attributes."""
    return itemgetter(*attributes)


# The two ends of a measurement


def ping(mechanism: Mechanism, message: str, count: int, warm_up: int) -> list[float]:
    """Seconds that each of ``count`` round trips took, after some that are not counted.

    Raises:
        SFMError: what came back is not what was sent.
    """
    send, receive, opened = mechanism.way(attributes_of(message))
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
    """The other end: return as many messages as ``ping`` sends."""
    send, receive, opened = mechanism.way(attributes_of(message))
    for _ in range(warm_up + count):
        opened(receive())
        send()


# Sockets, as far as Python and the paper's programs go


def whole(link: socket.socket, size: int) -> bytes:
    """The next ``size`` bytes."""
    received = link.recv(size, socket.MSG_WAITALL)
    if len(received) < size:
        raise ConnectionError("the other process closed its socket")
    return received


class Sockets:
    """Bare data, TCP or Unix. Both ends know how much comes; there is nothing but ``data``."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.route = "unix" if link.family == socket.AF_UNIX else "tcp"

    def way(self, attributes: Attributes) -> Way:
        data = attributes["data"]
        send = partial(self.link.sendall, data)
        if isinstance(data, bytes):
            return Way(send, partial(whole, self.link, len(data)), itself)
        return Way(send, partial(self._array, data.shape, data.dtype), itself)

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

    def way(self, attributes: Attributes) -> Way:
        return Way(partial(self._send, attributes), self._receive, from_dict(attributes))

    def _send(self, attributes: Attributes) -> None:
        pickled = pickle.dumps(attributes, protocol=5)
        self.link.sendall(self.header.pack(len(pickled)) + pickled)

    def _receive(self) -> Any:
        (size,) = self.header.unpack(whole(self.link, self.header.size))
        return pickle.loads(whole(self.link, size))


class Pipe:
    """``multiprocessing.Pipe``: a Unix socket with Python's own framing and pickling."""

    route = "unix"

    def __init__(self, link: Connection) -> None:
        self.link = link

    def way(self, attributes: Attributes) -> Way:
        return Way(partial(self.link.send, attributes), self.link.recv, from_dict(attributes))


# SFM


class Packets:
    """SFM's ``encode`` and ``decode`` over TCP, without its queue."""

    route = "tcp"
    most = 128 << 10

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.leftover = b""

    def way(self, attributes: Attributes) -> Way:
        return Way(partial(self._send, attributes), self._receive, attrgetter(*attributes))

    def _send(self, attributes: Attributes) -> None:
        self.link.sendall(encode(dest=0, **attributes))

    def _receive(self) -> Any:
        while True:
            part = self.link.recv(self.most)
            if not part:
                raise ConnectionError("the other process closed its socket")
            messages, self.leftover = decode(self.leftover + part)
            if messages:
                return messages[0]


class Queue:
    """SFM as programs use it: ``send`` and ``recv``."""

    def __init__(self, sfm: Endpoint, peer: int) -> None:
        self.sfm, self.peer = sfm, peer

    @property
    def route(self) -> str:
        return self.sfm.route_kind(self.peer)

    def way(self, attributes: Attributes) -> Way:
        send, recv, peer = self.sfm.send, self.sfm.recv, self.peer
        # Calls as programs write them: with the names in the text.
        match attributes:
            case {"tag": tag, "step": step, "data": data}:
                call = lambda: send(dest=peer, tag=tag, step=step, data=data)  # noqa: E731
            case {"data": data}:
                call = lambda: send(dest=peer, data=data)  # noqa: E731
            case _:
                call = partial(send, dest=peer, **attributes)
        return Way(call, lambda: recv(src=peer), attrgetter(*attributes))
