"""Whether a process on another machine lives, asked of nobody but the kernels.

A member listens on its address as long as it lives. The server keeps an idle TCP connection to
it, over which nothing is said after a knock, which lets it stay: when the process dies, however it
dies, its kernel closes the connection and refuses the next. A process that is stopped or holds its
GIL keeps it. Where nobody answers, the machine may have vanished or the line may be cut: the
process is *unreachable*, not dead, and is asked for again every second.

(Heartbeats would need a thread of the member that runs, and take a stopped process for dead.)
"""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from typing import Any
from urllib.parse import urlsplit

KEEPALIVE = {socket.TCP_KEEPIDLE: 2, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 3}
"""An idle connection whose other end is silent ends after five seconds."""
ATTEMPT_SECONDS = 1.0
"""An attempt that has not come through is followed by another one. (The kernel would wait longer
each time.)"""
REFUSALS = 3
RETRY_SECONDS = 0.1
"""Refused so often, with such pauses: nobody listens. (Once may be a mistake: a firewall that was
restarted just then answers in others' names.)"""
UNSURE_SECONDS = 1.0


class LivenessMonitor:
    """The connection to one member. Never blocks.

    An address that never answered counts as alive: the way there may be closed to us (a firewall)
    and open to others.

    Args:
        address: "tcp://IP:port".
        knock: what lets the connection stay, see ``_native.knock``.
    Attributes:
        dead: nobody listens at the address any more, or a witness has seen that it is dead.
    """

    def __init__(self, address: str, knock: bytes = b"") -> None:
        self._family, self._address = _parse(address)
        self._knock = knock
        self.dead = False
        self._reached = self._connected = False
        self._broken_at = self._begun_at = self._retry_at = 0.0
        self._refusals = 0
        self._silent_since: float | None = None
        self._socket: socket.socket | None = None
        self._connect()

    def fileno(self) -> int:
        """To be polled for reading, and while not ``settled`` for writing; -1 if there is none."""
        return -1 if self._socket is None else self._socket.fileno()

    @property
    def settled(self) -> bool:
        """Whether nothing changes before the descriptor becomes readable, or ``due``."""
        return self.dead or self._connected or self._socket is None

    @property
    def unsure(self) -> bool:
        """Whether the connection has just broken, and ``dead`` is about to become clear."""
        fresh = time.monotonic() - self._broken_at < UNSURE_SECONDS
        return self._reached and not self._connected and not self.dead and fresh

    @property
    def unreachable(self) -> float | None:
        """Seconds for which nobody has answered; None while somebody does, or never has."""
        if self._silent_since is None or not self._reached or self.dead:
            return None
        return time.monotonic() - self._silent_since

    @property
    def due(self) -> float | None:
        """Seconds until ``check`` is to be called although nothing has happened; None: never."""
        if self._connected or self.dead:
            return None
        return max(0.0, self._retry_at - time.monotonic())

    def check(self) -> None:
        """Find out what has happened. When the descriptor is ready, and when it is ``due``."""
        if self.dead:
            return
        if self._connected:
            self._look()
        elif self.due == 0.0:
            if self._socket is not None:  # nobody has answered
                self._close()
                self._fell_silent(self._begun_at)
            self._connect()
        elif self._socket is not None:
            self._judge(self._socket.connect_ex(self._address))

    def _look(self) -> None:
        assert self._socket is not None
        try:
            if not self._socket.recv(4096):  # else somebody says what is not for us
                self._broke()
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno == errno.ETIMEDOUT:
                quiet = sum(KEEPALIVE.values())
                self._fell_silent(time.monotonic() - quiet)
            self._broke()

    def _connect(self) -> None:
        self._begun_at = time.monotonic()
        self._retry_at = self._begun_at + ATTEMPT_SECONDS
        try:
            self._socket = socket.socket(self._family, socket.SOCK_STREAM)
        except OSError:  # no descriptor left: it is tried again
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
            self._silent_since = None
            self._refusals = 0
            assert self._socket is not None
            with contextlib.suppress(OSError):  # told when it is read
                self._socket.send(self._knock)
        elif outcome == errno.ECONNREFUSED:
            self._close()
            self._refusals += 1
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self.dead = self._refusals >= REFUSALS
        elif outcome not in (errno.EINPROGRESS, errno.EALREADY):
            self._close()  # there is no way just now
            self._fell_silent(self._begun_at)

    def _fell_silent(self, since: float) -> None:
        if self._silent_since is None:
            self._silent_since = since

    def _broke(self) -> None:
        """The connection has ended: its process died, or has enough of our silence."""
        self._close()
        self._connected = False
        self._broken_at = time.monotonic()
        self._connect()

    def bury(self) -> None:
        """Believe a witness that it is dead: there may never have been a way to it from here."""
        self.dead = True
        self._close()

    def close(self) -> None:
        """Close the connection."""
        self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


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
