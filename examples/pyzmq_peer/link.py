"""What goes to one member and comes from it: frames. See docs/wire-format.md."""

from __future__ import annotations

import itertools
import struct
from collections import deque
from typing import Any

from .packet import decode

VERSION = 1
HEADER = struct.Struct("<IBBBBIIIB3x16s16sQ")
INNER = struct.Struct("<B?6xQQ")
LARGEST = 512 << 10
"""Bytes of a frame's body at most."""
BUFFERING = 64 << 20
"""Cost of the messages at most that wait at a receiver; a message costs its bytes and OVERHEAD."""
OVERHEAD = 128
NUMBERED = b"DFPX"
MESSAGE = 1
"""The class of messages; others are of class 0."""


def site_number(name: str) -> int:
    """FNV-1a."""
    number = 0x811C9DC5
    for byte in name.encode():
        number = (number ^ byte) * 0x01000193 % (1 << 32)
    return number


class Link:
    """What goes to one member and comes from it, once and in order, over any number of connections.

    Attributes:
        out: sends a frame on the connection that is used now; None if there is none.
        again_at: when to connect again, after an end.
        lost: why nothing more comes; "" if it may.
    """

    def __init__(self, own: str, peer: str, site: str, address: str) -> None:
        self._ends = bytes.fromhex(own)[::-1], bytes.fromhex(peer)[::-1]
        self._site, self._address = site_number(site), address
        self.out: Any = None
        self.lost, self.again_at = "", 0.0
        self._counter, self._number, self._question = itertools.count(1), 0, 0
        self._unacked = deque[tuple[int, bytes]]()
        self._held = self._has_begun = False
        self._arrived, self._their_question = 0, 0
        self._assembly: tuple[int, bytearray] | None = None
        self._sent = self._taken = 0
        """Cost of what was sent, and of what the member has received of it."""
        self._received = [0, 0]
        """Cost of what was received here, by account: of messages, and of those with a context."""
        self.messages = deque[bytes]()

    # ---- out ----

    def _frame(self, kind: bytes, number: int, body: bytes, flag: bool, ahead: int) -> bytes:
        text = INNER.pack(kind[0], flag, number, self._arrived) + body
        klass = MESSAGE if kind in NUMBERED else 0
        front = (len(text), ord("S"), 8, klass, VERSION, ahead, self._site, self._site, 1)
        return HEADER.pack(*front, *self._ends, next(self._counter)) + text

    def put(self, kind: bytes, number: int = 0, body: bytes = b"", flag: bool = False) -> None:
        """Send a frame that is not numbered, if there is a connection."""
        if self.out:
            self.out(self._frame(kind, number, body, flag, 0))

    def use(self, out: Any, broke: bool = False) -> None:
        """Send on this connection from now on; ``broke``: since the former one is over."""
        self.out, again = out, broke and self._has_begun
        if self._has_begun:
            self._question += 1
            self._held = bool(self._unacked)
        self.put(b"H", self._question, self._address.encode(), again)
        self._has_begun = True
        if not self._held:
            self._send_missing()

    def _send_missing(self) -> None:
        for _, frame in list(self._unacked):
            if self.out:
                self.out(frame)

    def _send_numbered(self, kind: bytes, body: bytes, ahead: int) -> None:
        self._number += 1
        frame = self._frame(kind, self._number, body, False, ahead)
        self._unacked.append((self._number, frame))
        if self.out and not self._held:
            self.out(frame)

    def may_send(self, nbytes: int) -> bool:
        """Whether the member has room; if not, it is asked for a report."""
        waiting = self._sent - self._taken
        has_room = waiting <= 0 or waiting + nbytes + OVERHEAD <= BUFFERING
        if not has_room:
            self.put(b"Q")
        return has_room

    def send(self, packet: bytes) -> None:
        self._sent += len(packet) + OVERHEAD
        if len(packet) <= LARGEST:
            self._send_numbered(b"D", packet, 0)
            return
        kind, rest = b"F", memoryview(len(packet).to_bytes(8, "little") + packet)
        while rest:
            part, rest = rest[:LARGEST], rest[LARGEST:]
            self._send_numbered(kind, bytes(part), min(len(rest), 0xFFFFFFFF))
            kind = b"P"

    @property
    def has_ended(self) -> bool:
        """Whether its connection is over: what it owes the member waits for another one."""
        return self.out is None and self._has_begun and not self.lost

    @property
    def is_settled(self) -> bool:
        """Whether everything has arrived."""
        return not self._unacked or bool(self.lost)

    # ---- in ----

    def take(self, frame: bytes) -> None:
        """Act on a frame of the member's."""
        text = frame[HEADER.size :]
        code, flag, number, arrived = INNER.unpack_from(text)
        kind, body = bytes([code]), text[INNER.size :]
        while self._unacked and self._unacked[0][0] <= arrived:
            self._unacked.popleft()
        if kind in NUMBERED:
            if number == self._arrived + 1:
                self._arrived = number
                self._take_packet(kind, body)
            is_missing = number > self._arrived
            self.put(b"R", self._their_question if is_missing else 0, flag=is_missing)
        elif kind == b"H":
            self._their_question = max(self._their_question, number)
            self.put(b"W", number)
            self._report()
        elif kind == b"W" and number >= self._question and self._held:
            self._held = False
            self._send_missing()
        elif kind == b"R" and flag and number >= self._question and self.out:
            self.use(self.out)
        elif kind == b"A" and not flag:
            self._taken = max(self._taken, number)
        elif kind == b"Q":
            self._report()
        elif kind in (b"B", b"L"):
            self.lost = "it has left" if kind == b"B" else f"it gave up: {body.decode()}"

    def _take_packet(self, kind: bytes, body: bytes) -> None:
        if kind == b"X":
            self._assembly = None
            return
        if kind == b"D":
            self.messages.append(body)
            return
        if kind == b"F":
            self._assembly = int.from_bytes(body[:8], "little"), bytearray(body[8:])
        elif self._assembly:
            self._assembly[1].extend(body)
        if self._assembly and len(self._assembly[1]) >= self._assembly[0]:
            self.messages.append(bytes(self._assembly[1]))
            self._assembly = None

    def received(self, packet: bytes) -> dict[str, Any] | None:
        """The message in a packet, whose room the member gets back; None if it is the library's."""
        attributes, context = decode(packet)
        self._received[bool(context)] += len(packet) + OVERHEAD
        self._report()
        return None if context else attributes

    def _report(self) -> None:
        for account, cost in enumerate(self._received):
            self.put(b"A", cost, flag=bool(account))
