"""ZeroMQ sockets in an event loop."""

from __future__ import annotations

from typing import TypeAlias, cast

import zmq

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"
Socket: TypeAlias = "zmq.Socket[bytes]"


def descriptor(socket: Socket) -> int:
    """What becomes readable when something happens at the socket.

    It tells once: after that ``has_mail`` must have said no before it tells again.
    """
    return cast(int, socket.get(zmq.FD))


def has_mail(socket: Socket) -> bool:
    """Whether ``recv`` would return at once. Cheaper than a ``recv`` that fails."""
    return bool(cast(int, socket.get(zmq.EVENTS)) & zmq.POLLIN)
