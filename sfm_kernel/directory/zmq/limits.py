"""What a stranger who connects can take of this process, and for how long.

Whoever reaches a socket may open connections, and ZeroMQ gathers what comes through one before it
knows who is there: all of this is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfm_kernel.directory.zmq.sockets import Socket

LARGEST_FRAME = (2 << 20) + 4096
"""Bytes: of a request, and what encryption adds. ZeroMQ ends a connection that announces more."""

HANDSHAKE_SECONDS = 3.0
"""A connection that has not shown the key after so long is ended by whoever accepted it."""


def bound(server: Socket, largest: int = LARGEST_FRAME) -> None:
    """Set the limits of a socket that binds; before it does."""
    server.maxmsgsize = largest
    server.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)
