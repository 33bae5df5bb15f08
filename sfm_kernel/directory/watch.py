"""Whether a process on another machine lives, asked of nobody but the kernels.

A member listens on its address as long as it lives. The server keeps an idle TCP connection to it,
over which nothing is ever said: when the process dies, however it dies, its kernel closes the
connection and refuses the next. A process that is stopped or holds its GIL keeps it. When a whole
machine vanishes, keepalive ends the connection within 10 s.

Who never says anything is a stranger to ZeroMQ, which hangs up after some seconds. Before it does,
another connection takes the place of this one.

(Heartbeats would need a thread of the member that runs, and take a stopped process for dead.)
"""

from __future__ import annotations

import errno
import math
import socket
import time
from typing import Any
from urllib.parse import urlsplit

from sfm_kernel.transport.zmq.limits import HANDSHAKE_SECONDS

KEEPALIVE = {socket.TCP_KEEPIDLE: 4, socket.TCP_KEEPINTVL: 2, socket.TCP_KEEPCNT: 3}
UNREACHABLE_SECONDS = 10.0
UNSURE_SECONDS = 1.0
WELCOME_SECONDS = HANDSHAKE_SECONDS / 3
"""A connection is replaced so long after ZeroMQ's greeting, or up to twice: all at one time."""


class Watch:
    """The connection to one member. Never blocks.

    An address that never answered counts as alive: the way there may be closed to us (a firewall)
    and open to others.

    Attributes:
        dead: nobody listens at the address any more.
    """

    def __init__(self, address: str) -> None:
        self._family, self._address = _parse(address)
        self.dead = False
        self._reached = self._connected = False
        self._broken_at = self._lost_at = 0.0
        self._replaced_by = math.inf
        self._socket: socket.socket | None = None
        self._before: socket.socket | None = None  # until the one that takes its place is connected
        self._connect()

    def fileno(self) -> int:
        """To be polled for reading, and while not ``settled`` for writing; -1 if there is none."""
        return -1 if self._socket is None else self._socket.fileno()

    @property
    def settled(self) -> bool:
        """Whether nothing changes before the descriptor becomes readable."""
        return self.dead or self._connected

    @property
    def unsure(self) -> bool:
        """Whether the connection has just broken, and ``dead`` is about to become clear."""
        fresh = time.monotonic() - self._broken_at < UNSURE_SECONDS
        return self._reached and not self.settled and fresh

    @property
    def due(self) -> float | None:
        """Seconds until ``check`` is to be called although nothing has happened; None: never."""
        if not self._connected or self._replaced_by == math.inf:
            return None
        return max(0.0, self._replaced_by - time.monotonic())

    def check(self) -> None:
        """Find out what has happened. When the descriptor is ready, and now and then."""
        if self.dead:
            return
        if self.due == 0.0:
            self._replace()
            return
        if self._socket is None:
            self._connect()
        elif not self._connected:
            self._judge(self._socket.connect_ex(self._address))
        else:
            try:
                if self._socket.recv(4096):  # ZeroMQ's greeting, which we do not answer
                    now = time.monotonic()
                    self._replaced_by = WELCOME_SECONDS * (now // WELCOME_SECONDS + 2)
                    return
                self._broke()
            except BlockingIOError:
                return
            except OSError as error:
                self._broke(vanished=error.errno == errno.ETIMEDOUT)

    def _connect(self) -> None:
        try:
            self._socket = socket.socket(self._family, socket.SOCK_STREAM)
        except OSError:  # no descriptor left: the next check tries again
            return
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self._judge(self._socket.connect_ex(self._address))

    def _judge(self, outcome: int) -> None:
        """What an attempt to connect has come to."""
        if outcome in (0, errno.EISCONN):
            self._connected = self._reached = True
            self._close_before()
        elif outcome == errno.ECONNREFUSED or self._is_overdue():
            self._die()
        elif outcome not in (errno.EINPROGRESS, errno.EALREADY):
            self._close()  # unreachable just now: the next check tries again

    def _is_overdue(self) -> bool:
        return self._reached and time.monotonic() - self._lost_at > UNREACHABLE_SECONDS

    def _replace(self) -> None:
        """Connect once more while the connection still stands."""
        self._before, self._socket = self._socket, None
        self._connected, self._replaced_by = False, math.inf
        self._lost_at = time.monotonic()
        self._connect()

    def _broke(self, vanished: bool = False) -> None:
        """The connection has ended: its process died, or it has enough of our silence."""
        self._close()
        self._connected, self._replaced_by = False, math.inf
        self._broken_at = self._lost_at = time.monotonic()
        if vanished:
            self._die()
        else:
            self._connect()

    def _die(self) -> None:
        self.dead = True
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._close()
        self._close_before()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _close_before(self) -> None:
        if self._before is not None:
            self._before.close()
            self._before = None


def _parse(address: str) -> tuple[int, Any]:
    """Family and socket address of "tcp://IP:port"; raises ValueError if it is none."""
    try:
        parts = urlsplit(address)
        if parts.scheme != "tcp" or not parts.hostname or not parts.port:
            raise ValueError("it lacks a part")
        if not address.isprintable() or parts.path or parts.query or parts.fragment:
            raise ValueError("it has more than that")
        # Numeric only: asking a name server would stop all others meanwhile.
        found = socket.getaddrinfo(
            parts.hostname, parts.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (ValueError, OSError) as error:
        raise ValueError(f"address {address!r}: 'tcp://IP:port' is needed ({error})") from None
    return found[0][0], found[0][4]
