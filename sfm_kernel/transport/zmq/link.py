"""The sending side of one peer: what is to go out, in order, each message exactly once."""

from __future__ import annotations

import itertools
import math
import struct
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Only the network thread imports zmq: a KeyboardInterrupt, which hits the main thread, would
    # leave it half imported.
    from sfm_kernel.transport.zmq.line import Line

Put = Callable[[bytes, Any], None]

LARGE = 1 << 16
"""Bodies of so many bytes go without a copy, and only from the network thread: a KeyboardInterrupt
inside pyzmq's book-keeping of such buffers can free them while they are being sent (it stops the
thread that keeps them, see Thread.is_alive in Python 3.11), or is swallowed by a destructor."""

HEADER = struct.Struct("<c?16s16sQ")
"""kind, flag, uid of the sender, uid of the receiver, number. A message is [header, body].

The receiver's uid is there because a port may be given to a new process as soon as its owner died;
the sender's, because a ROUTER's own name for a connection changes when it is made anew.

    DATA    body: the packet; flag: acknowledge at once; number: counts from 1
    GREET   body: the sender's address; number: that of its last DATA. Sent whenever a line comes up
    ACK     number: total that was received, in the units of the native Outflow
    BYE     the sender is about to close, and waits for DONE: all before has arrived
    DONE
    BROKEN  messages are missing: this incarnation's messages are not accepted any more
"""
DATA, GREET, ACK, BYE, DONE, BROKEN = (bytes([letter]) for letter in b"DGABEX")


class Link:
    """The way to one peer, and its outbox. Any thread may ``send``; the rest is the network's.

    Attributes:
        lost: why nothing will ever arrive at the peer any more; None while it may.
        outflow: the native account of what the peer has not received; None if we only
            acknowledge.
        line: the connection's state, once it is opened.
        done: the peer has confirmed our BYE.
    """

    def __init__(self, uid: str, address: str, own_uid: str, own_address: str) -> None:
        self.uid, self.address = uid, address
        self.lost: str | None = None
        self.outflow: Any = None
        self.line: Line | None = None
        self.done = False
        self._ends = bytes.fromhex(own_uid), bytes.fromhex(uid)
        self._greeting = own_address.encode()
        self._put: Put | None = None
        self._lock = threading.Lock()
        # (urgent, packet, number): what was counted by the Outflow and is not in ZeroMQ's hands.
        self._outbox: deque[tuple[bool, Any, int]] = deque()
        self._numbers = itertools.count(1)
        self._last = 0

    def send(self, packet: Any, buffering: int, check: Callable[[], object]) -> None:
        """Wait for room, then hand the packet to ZeroMQ; or leave it to the network thread, if it
        is large or there is no connection yet (``waiting`` says so).

        An interrupt leaves it either uncounted and unsent, or counted and sent exactly once.
        """
        room = map(self.outflow.acquire, (len(packet),), (buffering,), (check,))
        # One call into C, between whose steps Python handles no signal: what was counted is in
        # the outbox. (zip asks for the number last, so that none is drawn in vain.)
        self._outbox.extend(zip(room, (packet,), self._numbers))  # noqa: B905
        self.flush(LARGE)

    @property
    def is_up(self) -> bool:
        """Whether the peer was reached, and nothing tells that it has gone."""
        line = self.line
        return line is not None and line.up

    @property
    def waiting(self) -> bool:
        """Whether the outbox still holds something for the network thread to send."""
        return bool(self._outbox) and self.lost is None

    def flush(self, limit: float = math.inf) -> None:
        """Hand the outbox to ZeroMQ, up to the first packet of ``limit`` bytes. Does not block.

        If an interrupt strikes between the sending and the taking out, a message is sent twice;
        the receiver sees that by its number.
        """
        with self._lock:
            while self._outbox and self._put is not None:
                urgent, packet, number = self._outbox[0]
                if len(packet) >= limit:
                    return
                self._put(HEADER.pack(DATA, urgent, *self._ends, number), packet)
                self._last = number
                self._outbox.popleft()
                self.outflow.count()

    def control(self, kind: bytes, number: int = 0) -> None:
        """Send a message without body."""
        with self._lock:
            if self._put is not None:
                self._put(HEADER.pack(kind, False, *self._ends, number), b"")

    def greet(self) -> None:
        """Say who we are and how much was sent, so that the peer sees what is missing."""
        with self._lock:
            if self._put is not None:
                self._put(HEADER.pack(GREET, False, *self._ends, self._last), self._greeting)

    def open(self, put: Put) -> None:
        """Send through ``put`` from now on: greet, and send what has gathered."""
        with self._lock:
            put(HEADER.pack(GREET, False, *self._ends, 0), self._greeting)
            self._put = put
        self.flush()

    def close(self, why: str) -> None:
        """Use the connection no more. What was not delivered is given up; ``lost`` says why."""
        with self._lock:
            self.lost = self.lost or why
            self._put = self.line = None
            self._outbox.clear()
