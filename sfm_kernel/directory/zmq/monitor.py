"""The state of a connecting socket's connection, from ZeroMQ's monitor events.

Only the kernel's word counts, never how fast a peer answers: a process that is stopped or holds its
GIL keeps its connections. When a process dies, its connections close at once, and new ones are
refused.
"""

from __future__ import annotations

import struct
import time

import zmq

from sfm_kernel.directory.zmq.sockets import LARGEST_FRAME, Socket, has_mail

RETRY_MS = 100
REFUSALS = 3
REFUSED_SECONDS = 0.3
"""After this number of refusals in this many seconds the process has died, since it listens as long
as it lives."""
REJECTIONS = 8
REJECTED_SECONDS = 1.5
"""Another server listens there if so many connections, one after the other, were closed without a
word, over so many seconds. (Some may be chance: ``admission`` closes surplus connections, and a
firewall that was restarted those that a stopped server has not answered yet.)"""
SOON_SECONDS = 0.75
"""Seconds in which who does not have the server's key ends a connection."""
MAXRT_MS = 5000
"""Milliseconds without an acknowledgement after which a connection is replaced: the kernel alone
waits longer each time, and goes on waiting long after the network works again."""

_EVENTS = (
    zmq.Event.CONNECTED
    | zmq.Event.CLOSED
    | zmq.Event.DISCONNECTED
    | zmq.Event.HANDSHAKE_SUCCEEDED
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)

_EVENT = struct.Struct("=H")
"""The head of a monitor's message. (pyzmq's parser would import all of asyncio.)"""


def prepare(dealer: Socket, largest: int = LARGEST_FRAME) -> None:
    """Set a connecting socket's options: retry soon, use keepalives, never drop.

    ``largest``: the most bytes of a frame; a stranger may have taken over the peer's address.
    """
    dealer.linger = 0
    dealer.sndhwm = dealer.rcvhwm = 0
    dealer.reconnect_ivl = RETRY_MS
    dealer.maxmsgsize = largest
    # A stopped peer shakes hands when it goes on; the accepting side bounds the time.
    dealer.handshake_ivl = 0
    dealer.tcp_keepalive = 1
    dealer.tcp_keepalive_idle = 2
    dealer.tcp_keepalive_intvl = 2
    dealer.tcp_keepalive_cnt = 2
    dealer.tcp_maxrt = MAXRT_MS


class ConnectionMonitor:
    """The state of one connection.

    Attributes:
        up: the handshake is done, messages flow.
        refused: the server does not admit this client's key.
        breaks: the number of times it was up and came down.
        dealer, monitor: the socket, not connected yet, and its monitor socket.
    """

    def __init__(self, dealer: Socket) -> None:
        self.up = self.refused = False
        self.breaks = 0
        self._connected = False
        self._connected_at = 0.0
        self._failures = 0
        self._rejections = 0
        self._rejections_since = 0.0
        self._down_since = time.monotonic()
        self.dealer = dealer
        self.monitor: Socket = dealer.get_monitor_socket(_EVENTS)

    def update(self) -> bool:
        """Read the monitor's events; return whether the connection came up (again)."""
        came_up = False
        while has_mail(self.monitor):
            (event,) = _EVENT.unpack_from(self.monitor.recv_multipart()[0])
            if event == zmq.Event.CONNECTED:
                self._connected, self._connected_at = True, time.monotonic()
            elif event == zmq.Event.HANDSHAKE_SUCCEEDED:
                self.up = came_up = True
                self._failures = self._rejections = 0
            elif event == zmq.Event.HANDSHAKE_FAILED_AUTH:
                self.refused = True
            else:
                self._came_down()
        return came_up

    def _came_down(self) -> None:
        if self.up:
            self.breaks += 1
            self._down_since = time.monotonic()
        elif self._connected:
            self._rejected()
        else:
            self._failures += 1
        self.up = self._connected = False

    def _rejected(self) -> None:
        """Note that the server has closed the connection before the handshake was done."""
        now = time.monotonic()
        self._failures = 0
        if now - self._connected_at > SOON_SECONDS:
            # The server had no time to check the key before ZeroMQ gave the connection up.
            self._rejections, self._down_since = 0, now
            return
        # Who does not have the key of the server that is meant cannot even read what we say.
        if not self._rejections:
            self._rejections_since = now
        self._rejections += 1

    @property
    def rejected(self) -> bool:
        """Whether something listens there that does not have the server's key."""
        lasted = time.monotonic() - self._rejections_since
        return self._rejections >= REJECTIONS and lasted > REJECTED_SECONDS

    @property
    def dead(self) -> bool:
        """Whether no server of this world listens there. A silent one may answer again."""
        if self._connected:
            return False
        down = time.monotonic() - self._down_since
        gone = self._failures >= REFUSALS and down > REFUSED_SECONDS
        return gone or self.refused or self.rejected

    def close(self) -> None:
        """Close the connection and its monitor. Unsent messages are dropped."""
        self.dealer.disable_monitor()
        self.monitor.close(0)
        self.dealer.close(0)
