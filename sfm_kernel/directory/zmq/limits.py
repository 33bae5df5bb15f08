"""Limits of the resources that a stranger's connection can take, and of its duration.

Any program that reaches a socket may open connections, and ZeroMQ buffers their data before it has
checked their keys: both are bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfm_kernel.directory.zmq.sockets import Socket

LARGEST_FRAME = (2 << 20) + 4096
"""The most bytes of a request, with encryption. ZeroMQ closes a connection that announces more."""

HANDSHAKE_SECONDS = 3.0
"""Seconds after which the accepting side closes a connection that has not shown the key."""


def bound(server: Socket) -> None:
    """Set the limits of a binding socket, before it binds."""
    server.maxmsgsize = LARGEST_FRAME
    server.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)
