"""The network thread's work: receives, acknowledges, opens links and watches their lines.

Runs in one thread and owns every ZeroMQ socket; other threads use a Link's DEALER only, under its
lock. Everything is awaited in one epoll: with a descriptor for each socket its cost does not grow
with the number of peers.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import zmq
import zmq.utils.garbage  # or a send would import it, in a thread that can be interrupted

from sfm_kernel.errors import EndpointClosed, PacketError
from sfm_kernel.transport.base import MAX_MEMBERS
from sfm_kernel.transport.zmq.curve import Keys
from sfm_kernel.transport.zmq.line import Line, prepare
from sfm_kernel.transport.zmq.link import ACK, BROKEN, BYE, DATA, DONE, GREET, HEADER, LARGE, Link
from sfm_kernel.transport.zmq.sockets import Context, Socket, descriptor, has_mail
from sfm_kernel.transport.zmq.wake import Wake

if TYPE_CHECKING:
    from sfm_kernel.transport.zmq.transport import ZmqTransport

BATCH, BATCH_BYTES = 64, 1 << 20
"""What is taken in before others (acknowledgements, lines) have their turn."""
ACK_PAUSE = 0.005
"""Seconds between acknowledgements to senders with plenty of room: a ping-pong of small messages
would otherwise send one for each."""
TICK = 0.25
"""Seconds between looks at lines that are down."""
IDLE_TICK = 1.0
"""Seconds between looks at everything, should a wake have fallen victim to an interrupt."""
CLOSE_SECONDS = 2.0
"""How long ``close`` waits for peers that do not confirm what was sent to them."""


class Source:
    """What one peer delivers: its lane in the inbox, and the number of its next message.

    Attributes:
        broken: a message was lost, so that no later one is accepted; the peer counts as lost.
        urgent: its last message asked for acknowledgements at once.
        last: when something came in (time.monotonic).
    """

    def __init__(self, lane: int, address: str) -> None:
        self.lane, self.address = lane, address
        self.expected = 1
        self.broken = self.urgent = False
        self.last = time.monotonic()


class Network:
    """See the module. Made and run in the network thread, at the first use of ZeroMQ.

    Attributes:
        sources: by uid, whoever has greeted us.
        idle_at: when the ROUTER was last seen empty (time.monotonic).
    """

    def __init__(self, transport: ZmqTransport, listener: socket.socket, wake: Wake) -> None:
        self.sources: dict[str, Source] = {}
        self.idle_at = 0.0
        self._transport = transport
        self._inbox = transport.inbox
        self._uid = bytes.fromhex(transport.uid)
        self._wake = wake
        self._down: set[Link] = set()
        self._close_by: float | None = None
        self._parting: list[Link] = []
        self._acks_at: float | None = None  # while acknowledgements pause: when they go on
        self._context: Context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 4 * MAX_MEMBERS)
        self._keys = Keys(transport.key, b"sfm peer")
        self._gate = self._keys.gate(self._context)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._router.sndhwm = self._router.rcvhwm = 0  # the senders' Outflow bounds it
        self._keys.serve(self._router)
        # It has been listening since before zmq was imported; whoever waits there is accepted now.
        self._router.setsockopt(zmq.USE_FD, listener.detach())
        self._router.bind(transport.address)
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[], None]] = {}
        self._watch(wake.fd, self._woken)
        self._watch(descriptor(self._gate.socket), self._gate.serve)
        self._watch(descriptor(self._router), self._receive)
        self._watch(self._inbox.ack_fd(), self._acknowledge)

    def _watch(self, fd: int, handler: Callable[[], None]) -> None:
        self._handlers[fd] = handler
        self._epoll.register(fd, select.EPOLLIN)

    def run(self) -> None:
        """Serve until the transport is closed and what was sent has arrived."""
        try:
            self._woken()
            while not self._is_over():
                events = self._epoll.poll(self._patience())
                for fd, _ in events or [(self._wake.fd, 0)]:
                    if handler := self._handlers.get(fd):  # or closed by the event before
                        handler()
                if self._acks_at is not None and time.monotonic() >= self._acks_at:
                    self._resume_acks()
                for link in list(self._down):
                    self._judge(link)
        finally:
            self._shut()

    def _patience(self) -> float:
        if self._acks_at is not None:
            return max(self._acks_at - time.monotonic(), 0.0)
        return TICK if self._down or self._close_by else IDLE_TICK

    # ---- what comes in ----

    def _receive(self) -> None:
        # First take all, then deliver: a thread that a delivery wakes finds us nearly done, and
        # does not have to share the GIL with our calls into ZeroMQ.
        taken, size = [], 0
        while has_mail(self._router):
            parts = [self._router.recv(copy=False)]
            while parts[-1].more:
                parts.append(self._router.recv(copy=False))
            # [connection, header, body]; a header whose sender was interrupted may go before.
            if len(parts) >= 3 and len(parts[-2]) == HEADER.size:
                taken.append((parts[-2].buffer, parts[-1]))
                size += len(parts[-1])
            if len(taken) == BATCH or size > BATCH_BYTES:
                self._wake.ring()  # come back: the descriptor does not tell again
                break
        else:
            self.idle_at = time.monotonic()
        for header, body in taken:
            self._arrived(header, body)

    def _arrived(self, header: memoryview, body: zmq.Frame) -> None:
        kind, flag, sender, receiver, number = HEADER.unpack(header)
        if receiver != self._uid:  # we have the port of somebody who died
            return
        uid = sender.hex()
        source = self.sources.get(uid)
        if kind == DATA:
            if source is not None and not source.broken:
                self._deliver(uid, source, number, body, flag)
        elif kind == GREET:
            if source is None:
                address = body.bytes.decode(errors="replace")
                source = self.sources[uid] = Source(self._inbox.lane(uid, None), address)
            if source.broken or number >= source.expected:
                self._refuse(uid, source, "messages from it were lost on the way")
        elif kind == BYE:
            if source is not None:
                leaving = self._link(uid, source)
                leaving.control(DONE)
                leaving.lost = ""  # it will not receive any more
        elif link := self._transport.links.get(uid):
            if kind == ACK and link.outflow is not None:
                link.outflow.credit(number)
            elif kind == DONE:
                link.done = True
            elif kind == BROKEN:
                self._lose(link, "and messages to it were lost on the way")

    def _deliver(
        self, uid: str, source: Source, number: int, body: zmq.Frame, urgent: bool
    ) -> None:
        if number < source.expected:  # sent twice, see Link.flush
            return
        if number > source.expected:
            self._refuse(uid, source, "messages from it were lost on the way")
            return
        source.last = time.monotonic()
        source.urgent = urgent
        source.expected += 1
        try:
            self._inbox.deliver(source.lane, body.buffer, True)
        except PacketError as error:
            self._refuse(uid, source, f"it sent a damaged message: {error}")
        except EndpointClosed:
            return
        if urgent and self._acks_at is not None:
            self._resume_acks()

    def _refuse(self, uid: str, source: Source, why: str) -> None:
        """Accept nothing more from a peer, and tell it: order and completeness are promised."""
        link = self._link(uid, source)
        if not source.broken:
            source.broken = True
            print(f"sfm: lost process {uid} at {source.address}: {why}", file=sys.stderr)
        link.control(BROKEN)
        link.lost = f"({why})"

    # ---- acknowledgements ----

    def _acknowledge(self) -> None:
        urgent = False
        for uid, total in self._inbox.acks():
            source = self.sources.get(uid)
            if source is not None:
                self._link(uid, source).control(ACK, total)
                urgent |= source.urgent
        if not urgent and self._acks_at is None:
            self._acks_at = time.monotonic() + ACK_PAUSE
            self._epoll.modify(self._inbox.ack_fd(), 0)

    def _resume_acks(self) -> None:
        self._acks_at = None
        self._epoll.modify(self._inbox.ack_fd(), select.EPOLLIN)

    # ---- links ----

    def _link(self, uid: str, source: Source) -> Link:
        link = self._transport.link(uid, source.address)
        self._open_new()
        return link

    def _woken(self) -> None:
        self._wake.clear()
        self._open_new()
        for link in list(self._transport.links.values()):
            if link.waiting:
                link.flush()
        self._gate.serve()
        self._receive()
        if self._transport.closing and self._close_by is None:
            self._say_goodbye()

    def _open_new(self) -> None:
        while self._transport.unopened:
            link = self._transport.unopened.popleft()
            try:
                self._open(link)
                self._line_news(link)
            except zmq.ZMQError as error:  # no descriptors left, or what it greeted with is none
                self._lose(link, f"({link.address}: {error})")

    def _open(self, link: Link) -> None:
        dealer = self._context.socket(zmq.DEALER)
        prepare(dealer)
        self._keys.connect(dealer)
        line = link.line = Line(dealer)
        self._watch(descriptor(line.monitor), partial(self._line_news, link))
        self._down.add(link)
        dealer.connect(link.address)
        link.open(partial(_put, dealer))

    def _line_news(self, link: Link) -> None:
        if link.line is not None:
            if link.line.update() and link.line.breaks:
                link.greet()
            if link.line.up:
                self._down.discard(link)
            else:
                self._down.add(link)
                self._judge(link)

    def _judge(self, link: Link) -> None:
        """Give a link up whose line will not come back."""
        line = link.line
        if line is None:
            self._down.discard(link)
        elif line.unwelcome:
            self._lose(link, "(at its address somebody refuses our key)")
        elif line.dead or (line.failed and self._close_by):
            self._lose(link, "")

    def _lose(self, link: Link, why: str) -> None:
        self._down.discard(link)
        line = link.line
        link.close(why)
        if line is not None:
            fd = descriptor(line.monitor)
            del self._handlers[fd]
            self._epoll.unregister(fd)
            line.close()

    # ---- the end ----

    def _say_goodbye(self) -> None:
        """Ask every peer to confirm that all has arrived. ZeroMQ's linger knows less: only what
        the kernel took, and it waits in vain for a peer that has gone as well."""
        self._close_by = time.monotonic() + CLOSE_SECONDS
        self._acknowledge()
        for uid, source in self.sources.items():
            self._link(uid, source)  # who only sends to us is to know as well
        self._parting = list(self._transport.links.values())
        for link in self._parting:
            link.control(BYE)

    def _is_over(self) -> bool:
        if self._close_by is None:
            return False
        parted = all(link.done or link.lost is not None for link in self._parting)
        return parted or time.monotonic() >= self._close_by

    def _shut(self) -> None:
        for link in list(self._transport.links.values()):
            self._lose(link, "(the own endpoint is closed)")
        self._router.close()
        self._gate.socket.close()
        self._epoll.close()
        self._context.term()


def _put(dealer: Socket, header: bytes, body: Any) -> None:
    """Send one message; large bodies without a copy.

    If an interrupt strikes between the two, the next message begins with this header: the
    receiver looks only at the last two parts.
    """
    dealer.send(header, zmq.SNDMORE)
    dealer.send(body, copy=len(body) < LARGE)
