"""ZeroMQ sockets in an event loop."""

from __future__ import annotations

from typing import TypeAlias, cast

import zmq

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"
Socket: TypeAlias = "zmq.Socket[bytes]"


def descriptor(socket: Socket) -> int:
    """The descriptor that becomes readable when something happens at the socket.

    It signals only events after ``has_mail`` has returned False: call ``has_mail`` first, and again
    after each signal.
    """
    return cast(int, socket.get(zmq.FD))


def has_mail(socket: Socket) -> bool:
    """Whether ``recv`` would return at once. Cheaper than a ``recv`` that fails."""
    return bool(cast(int, socket.get(zmq.EVENTS)) & zmq.POLLIN)
