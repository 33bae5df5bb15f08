"""What the monitor of a connecting socket tells: whether the line to the peer is up.

Only the kernel's word counts here, never how fast a peer answers: a process that is stopped or
holds its GIL keeps its connections. One that died closes them at once, and refuses new ones.
"""

from __future__ import annotations

import struct
import time

import zmq

from sfm_kernel.directory.zmq.limits import HANDSHAKE_SECONDS, LARGEST_FRAME
from sfm_kernel.directory.zmq.sockets import Socket, has_mail

RETRY_MS = 100
REFUSALS = 3
REFUSED_SECONDS = 0.3
"""Refused so often in so long: the process is gone, since it listens as long as it lives."""
UNWELCOME_SECONDS = 1.5
"""Hung up on without a word for so long, three times and more: whoever is there has another key.
(Once may be a mistake: of too many strangers some are turned away, see door.py.)"""
MAXRT_MS = 5000
"""A connection of which nothing was acknowledged for so long is made anew: the kernel by itself
waits longer each time, and goes on long after a line is there again."""

_EVENTS = (
    zmq.Event.CONNECTED
    | zmq.Event.CLOSED
    | zmq.Event.DISCONNECTED
    | zmq.Event.HANDSHAKE_SUCCEEDED
    | zmq.Event.HANDSHAKE_FAILED_AUTH
)


_EVENT = struct.Struct("=H")
"""How a monitor's message begins. (pyzmq's parser is one more import away: of all asyncio.)"""


def prepare(dealer: Socket, largest: int = LARGEST_FRAME) -> None:
    """Options of a socket that connects: retry soon, keep the kernel watching, never drop.

    ``largest``: bytes of a frame that it takes in, whoever may have got the peer's address.
    """
    dealer.linger = 0
    dealer.sndhwm = dealer.rcvhwm = 0
    dealer.reconnect_ivl = RETRY_MS
    dealer.maxmsgsize = largest
    # A stopped peer shakes hands when it goes on; only who accepts bounds the time (limits.py).
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
        breaks: how often it was up and came down.
        dealer, monitor: the socket, not connected yet, and what tells about it.
    """

    def __init__(self, dealer: Socket) -> None:
        self.up = False
        self.breaks = 0
        self._connected = False
        self._connected_at = 0.0
        self._failures = 0
        self._slammed = 0
        self._slammed_since = 0.0
        self._refused = False
        self._down_since = time.monotonic()
        self.dealer = dealer
        self.monitor: Socket = dealer.get_monitor_socket(_EVENTS)

    def update(self) -> bool:
        """Take in what the monitor has; whether the line came up (again)."""
        came_up = False
        while has_mail(self.monitor):
            (event,) = _EVENT.unpack_from(self.monitor.recv_multipart()[0])
            if event == zmq.Event.CONNECTED:
                self._connected, self._connected_at = True, time.monotonic()
            elif event == zmq.Event.HANDSHAKE_SUCCEEDED:
                self.up = came_up = True
                self._failures = self._slammed = 0
            elif event == zmq.Event.HANDSHAKE_FAILED_AUTH:
                self._refused = True
            else:
                self._came_down()
        return came_up

    def _came_down(self) -> None:
        if self.up:
            self.breaks += 1
            self._down_since = time.monotonic()
        elif self._connected:
            self._hung_up()
        else:
            self._failures += 1
        self.up = self._connected = False

    def _hung_up(self) -> None:
        """Somebody is there, and has ended the connection before the handshake was done."""
        now = time.monotonic()
        self._failures = 0
        if now - self._connected_at > HANDSHAKE_SECONDS / 2:
            # It had no time to look at our key before ZeroMQ gave the connection up.
            self._slammed, self._down_since = 0, now
            return
        # Who has another key cannot even tell us so.
        if not self._slammed:
            self._slammed_since = now
        self._slammed += 1

    @property
    def unwelcome(self) -> bool:
        """Whether somebody is there and does not accept our key."""
        slammed_for = time.monotonic() - self._slammed_since
        return self._refused or (self._slammed >= REFUSALS and slammed_for > UNWELCOME_SECONDS)

    @property
    def failed(self) -> bool:
        """Whether it is down and at least one attempt to bring it up has failed."""
        return not self._connected and self._failures > 0

    @property
    def dead(self) -> bool:
        """Whether nobody (of this world) listens there. Who is silent may be heard again."""
        if self._connected:
            return False
        down = time.monotonic() - self._down_since
        return self.unwelcome or (self._failures >= REFUSALS and down > REFUSED_SECONDS)

    def close(self) -> None:
        """Close the connection and its monitor. What was not sent is given up."""
        self.dealer.disable_monitor()
        self.monitor.close(0)
        self.dealer.close(0)
