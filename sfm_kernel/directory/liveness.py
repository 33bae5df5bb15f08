"""Liveness of processes on other machines, by the word of the kernels alone.

A member listens on its address as long as it lives. The server keeps an idle TCP connection to it,
and makes it again whenever the member closes it, as it does with strangers. When the process dies,
however it dies, its kernel closes the connection and refuses the next. A process that is stopped or
holds its GIL keeps the connection. If there is no answer at all, the machine may have vanished or
the network may be cut: the process is *unreachable*, not dead, and the server tries again every
second.

(Heartbeats would need a running thread in the member, and would take a stopped process for dead.)
"""

from __future__ import annotations

import errno
import socket
import time
from typing import Any
from urllib.parse import urlsplit

KEEPALIVE = {socket.TCP_KEEPIDLE: 2, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: 3}
"""Keepalive options: an idle connection whose other end is silent ends after five seconds."""
ATTEMPT_SECONDS = 1.0
"""Seconds after which an unanswered attempt to connect is replaced by a new one. (The kernel would
wait longer each time.)"""
REFUSALS = 3
RETRY_SECONDS = 0.1
"""After this number of refusals, with pauses of this many seconds, no process listens. (One refusal
may be a mistake: a firewall that was just restarted answers for other machines.)"""
UNSURE_SECONDS = 1.0
"""Seconds after a break in which the process may turn out to be dead."""


class LivenessMonitor:
    """The connection to one member. Never blocks.

    An address that never answered counts as alive: a firewall may close it to the server and leave
    it open to others.

    Args:
        address: "tcp://IP:port".
    Attributes:
        dead: no process listens at the address any longer, or a relay has seen that it is dead.
    """

    def __init__(self, address: str) -> None:
        self._family, self._address = _parse(address)
        self.dead = False
        self._reached = self._connected = False
        self._broken_at = self._begun_at = self._retry_at = 0.0
        self._refusals = 0
        self._silent_since: float | None = None
        self._socket: socket.socket | None = None
        self._connect()

    def fileno(self) -> int:
        """The descriptor: poll it for reading, and for writing while not ``settled``; or -1."""
        return -1 if self._socket is None else self._socket.fileno()

    @property
    def settled(self) -> bool:
        """Whether nothing changes before the descriptor becomes readable, or ``due``."""
        return self.dead or self._connected or self._socket is None

    @property
    def unsure(self) -> bool:
        """Whether the connection has just broken, so that ``dead`` is about to be decided."""
        fresh = time.monotonic() - self._broken_at < UNSURE_SECONDS
        return self._reached and not self._connected and not self.dead and fresh

    @property
    def unreachable(self) -> float | None:
        """Seconds without an answer; None while the address answers, or if it never has."""
        if self._silent_since is None or not self._reached or self.dead:
            return None
        return time.monotonic() - self._silent_since

    @property
    def due(self) -> float | None:
        """Seconds after which to call ``check`` even if nothing has happened; None: never."""
        if self._connected or self.dead:
            return None
        return max(0.0, self._retry_at - time.monotonic())

    def check(self) -> None:
        """Update the state. Call it when the descriptor is ready, and when it is ``due``."""
        if self.dead:
            return
        if not self._connected:
            self._go_on()
        if self._connected:  # perhaps only just now: the process may have died since
            self._read()

    def _go_on(self) -> None:
        """Go on with the attempt to connect, or begin one."""
        if self.due == 0.0:
            if self._socket is not None:  # there was no answer
                self.close()
                self._fell_silent(self._begun_at)
            self._connect()
        elif self._socket is not None:
            self._judge(self._socket.connect_ex(self._address))

    def _read(self) -> None:
        assert self._socket is not None
        try:
            if not self._socket.recv(4096):  # unexpected data are ignored
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
        except OSError:  # no descriptor left: ``check`` tries again
            return
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in KEEPALIVE.items():
            self._socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self._judge(self._socket.connect_ex(self._address))

    def _judge(self, outcome: int) -> None:
        """Judge the outcome of an attempt to connect."""
        if outcome in (0, errno.EISCONN):
            self._connected = self._reached = True
            self._silent_since = None
            self._refusals = 0
        elif outcome == errno.ECONNREFUSED:
            self.close()
            self._refusals += 1
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self.dead = self._refusals >= REFUSALS
        elif outcome in (errno.ECONNRESET, errno.EPIPE):
            self._reached = True  # it was there, and has died or closed the connection meanwhile
            self._broke()
        elif outcome not in (errno.EINPROGRESS, errno.EALREADY):
            self.close()  # there is no route at present
            self._fell_silent(self._begun_at)

    def _fell_silent(self, since: float) -> None:
        if self._silent_since is None:
            self._silent_since = since

    def _broke(self) -> None:
        """Connect again: the process has died, or has closed the silent connection."""
        self.close()
        self._connected = False
        self._broken_at = time.monotonic()
        self._connect()

    def bury(self) -> None:
        """Accept a relay's report that the process is dead: the server may have no route to it."""
        self.dead = True
        self.close()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _parse(address: str) -> tuple[int, Any]:
    """Family and socket address of "tcp://IP:port"; raises ValueError if it is none."""
    try:
        url = urlsplit(address)
        if url.scheme != "tcp" or not url.hostname or not url.port:
            raise ValueError("it is incomplete")
        if not address.isprintable() or url.path or url.query or url.fragment:
            raise ValueError("it has more than that")
        # Numeric only: a name server's delay would stop the server's thread.
        found = socket.getaddrinfo(
            url.hostname, url.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )
    except (ValueError, OSError) as error:
        raise ValueError(f"address {address!r}: 'tcp://IP:port' is needed ({error})") from None
    return found[0][0], found[0][4]
