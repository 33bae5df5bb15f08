"""What a stranger who connects can take of this process, and for how long.

Whoever reaches a socket may open connections, and ZeroMQ gathers what comes through one before it
knows who is there: all of this is bounded.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from sfm_kernel.transport.base import MAX_MEMBERS

if TYPE_CHECKING:
    from sfm_kernel.transport.zmq.sockets import Socket

LARGEST_FRAME = (2 << 20) + 4096
"""Bytes: ``WHOLE`` of native/src/zmq/link.rs, and what headers and encryption add. ZeroMQ ends a
connection that announces more."""

HANDSHAKE_SECONDS = 3.0
"""A connection that has not shown the key after so long is ended by whoever accepted it."""

MOST_DESCRIPTORS = 1 << 16


def bound(server: Socket, largest: int = LARGEST_FRAME) -> None:
    """Set the limits of a socket that binds; before it does."""
    server.maxmsgsize = largest
    server.handshake_ivl = int(1000 * HANDSHAKE_SECONDS)


def most_strangers() -> int:
    """How many connections that have not shown the key yet may stand open.

    All members of a world may come at once; the rest of the descriptors is for others.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_MEMBERS if soft == resource.RLIM_INFINITY else min(MAX_MEMBERS, max(4, soft // 4))


def raise_descriptors() -> None:
    """Let this process, which others can connect to, have more descriptors, up to a bound."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
