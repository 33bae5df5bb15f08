"""ZeroMQ sockets in an event loop, and the limits of those that strangers can reach.

Any program that reaches a socket may open connections, and ZeroMQ buffers their data before it has
checked their keys: both the resources and the duration are bounded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import TypeAlias, cast

import zmq

Context: TypeAlias = "zmq.Context[zmq.Socket[bytes]]"
Socket: TypeAlias = "zmq.Socket[bytes]"

HANDSHAKE_SECONDS = 3.0
"""Seconds after which the accepting side closes a connection that has not shown the key."""


def descriptor(socket: Socket) -> int:
    """The descriptor that becomes readable when something happens at the socket.

    It signals only events after ``has_mail`` has returned False: call ``has_mail`` first, and again
    after each signal.
    """
    return cast(int, socket.get(zmq.FD))


def has_mail(socket: Socket) -> bool:
    """Whether ``recv`` would return at once. Cheaper than a ``recv`` that fails."""
    return bool(cast(int, socket.get(zmq.EVENTS)) & zmq.POLLIN)


def joined(frames: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The request and the body that were sent as these frames."""
    end = frames.index(b"") if b"" in frames else len(frames)
    return b"".join(frames[:end]), b"".join(frames[end:])


class Wake:
    """A descriptor that ``ring`` makes readable. After ``close``, ``ring`` does nothing."""

    def __init__(self) -> None:
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()  # or ``ring`` could write to a reused descriptor

    def ring(self) -> None:
        """Make ``fd`` readable until ``clear``."""
        with self._lock:
            if self.fd >= 0:
                os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Make ``fd`` quiet again."""
        try:
            os.eventfd_read(self.fd)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """Release the descriptor. Idempotent."""
        with self._lock:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1
