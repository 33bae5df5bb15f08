"""The network thread's work: opens links, watches their lines, says goodbye.

Runs in one thread, which makes and closes every ZeroMQ socket. In between the native core uses the
ROUTER and the DEALERs: what happens for each message happens there (``native/src/zmq``), in the
threads that send and receive, and in ``Exchange.tend`` while this thread waits.
"""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import zmq
import zmq.backend

from sfm_kernel.errors import printable
from sfm_kernel.transport.base import MAX_MEMBERS
from sfm_kernel.transport.zmq.curve import Keys
from sfm_kernel.transport.zmq.door import Door
from sfm_kernel.transport.zmq.limits import bound
from sfm_kernel.transport.zmq.line import Line, prepare
from sfm_kernel.transport.zmq.sockets import Context, descriptor

if TYPE_CHECKING:
    from sfm_kernel._native import Exchange, Link
    from sfm_kernel.transport.zmq.transport import ZmqTransport

TICK = 0.25
"""Seconds between looks at lines that are down."""
IDLE_TICK = 10.0
CLOSE_SECONDS = 5.0
CLOSE_SECONDS_AT_MOST = 60.0
CLOSE_BYTES_PER_SECOND = 2 << 20
"""How long ``close`` waits for peers that do not confirm that all has come: so long, and longer by
what may be under way to one of them, over a slow line."""
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)


def _module() -> str:
    """The extension module that leads to libzmq."""
    found = sys.modules[zmq.backend.Socket.__module__].__file__
    assert found is not None
    return found


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)  # addresses are what others say of themselves


class Network:
    """See the module. Made and run in the network thread, at the first use of ZeroMQ."""

    def __init__(self, transport: ZmqTransport, listener: socket.socket) -> None:
        self._transport = transport
        self._lines = transport.lines
        self._exchange: Exchange = transport.exchange
        self._down: set[Link] = set()
        self._close_by: float | None = None
        self._parting: list[Link] = []
        self._unopened: list[Link] = []
        self._handlers: dict[int, Callable[[], object]] = {}
        self._module = _module()
        self._context: Context = zmq.Context()
        self._context.set(zmq.MAX_SOCKETS, 4 * MAX_MEMBERS)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._router.sndhwm = self._router.rcvhwm = 0  # the senders' accounts bound it
        bound(self._router)
        self._keys: Keys | None = None  # nor a door: nobody else can enter the world's folder
        self._door: Door | None = None
        if not transport.room:
            self._keys = Keys(transport.key, b"sfm peer")
            self._door = Door(self._context, self._router, self._keys, self._exchange.speakers)
            self._door.address = transport.address
        # It has been listening since before zmq was imported; whoever waits there is accepted now.
        self._router.setsockopt(zmq.USE_FD, listener.detach())
        self._router.bind(transport.endpoint(transport.address))
        self._exchange.open(self._module, self._router.underlying, descriptor(self._router))
        if self._door:
            for fd in self._door.fds:
                self._watch(fd, self._door.serve)
            self._door.serve()

    def _watch(self, fd: int, handler: Callable[[], object]) -> None:
        self._handlers[fd] = handler
        self._exchange.watch(fd)

    def run(self) -> None:
        """Serve until the transport is closed and what was sent has arrived."""
        try:
            self._hear_news()
            while not self._is_over():
                for fd in self._exchange.tend(self._patience()):
                    if handler := self._handlers.get(fd):  # or closed by the one before
                        handler()
                self._hear_news()
                for link in list(self._down):
                    self._judge(link)
                if self._transport.closing and self._close_by is None:
                    # ZeroMQ's linger knows less: only what the kernel took, and it waits in vain
                    # for a peer that has gone as well.
                    self._parting = self._exchange.say_goodbye()
                    under_way = max((link.waiting for link in self._parting), default=0)
                    patience = CLOSE_SECONDS + under_way / CLOSE_BYTES_PER_SECOND
                    self._close_by = time.monotonic() + min(patience, CLOSE_SECONDS_AT_MOST)
                    self._hear_news()
        finally:
            self._shut()

    def _patience(self) -> float:
        return TICK if self._down or self._unopened or self._close_by else IDLE_TICK

    def _hear_news(self) -> None:
        unopened, refused, complaints = self._exchange.news()
        for complaint in complaints:
            _say(complaint)
        again, self._unopened = self._unopened, []
        for link in (*again, *unopened):
            try:
                self._open(link)
                self._line_news(link)
            except (zmq.ZMQError, OSError) as error:
                if error.errno not in NO_DESCRIPTORS:  # no such address
                    self._lose(link, f"({link.address}: {error})")
                    continue
                self._unopened.append(link)
                if link not in again:
                    _say(
                        f"sfm: no descriptor left for a connection to {link.address}: close "
                        f"files, or raise the limit (ulimit -n). Trying again meanwhile"
                    )
        for link in refused:
            self._lose(link, "")

    # ---- links ----

    def _open(self, link: Link) -> None:
        dealer = self._context.socket(zmq.DEALER)
        try:
            prepare(dealer)
            if self._keys:
                self._keys.connect(dealer)
            line = Line(dealer)
        except BaseException:
            dealer.close(0)
            raise
        self._lines[link.uid] = line
        self._transport.addresses.add(link.address)
        self._watch(descriptor(line.monitor), partial(self._line_news, link))
        self._down.add(link)
        dealer.connect(self._transport.endpoint(link.address))
        link.open(self._module, dealer.underlying)

    def _line_news(self, link: Link) -> None:
        line = self._lines.get(link.uid)
        if line is None:
            return
        if line.update() and line.breaks:
            self._exchange.greet_again(link)
        link.up = line.up
        if line.up:
            self._down.discard(link)
        else:
            self._down.add(link)
            self._judge(link)

    def _judge(self, link: Link) -> None:
        """Give a link up whose line will not come back."""
        line = self._lines.get(link.uid)
        if line is None:
            self._down.discard(link)
        elif line.unwelcome:
            self._lose(link, "(at its address somebody refuses our key)")
        elif line.dead or (line.failed and self._close_by):
            self._lose(link, "")

    def _lose(self, link: Link, why: str) -> None:
        self._down.discard(link)
        link.close(why)  # first: the socket is not used from now on
        if line := self._lines.pop(link.uid, None):
            fd = descriptor(line.monitor)
            del self._handlers[fd]
            self._exchange.unwatch(fd)
            line.close()

    # ---- the end ----

    def _is_over(self) -> bool:
        if self._close_by is None:
            return False
        waited_for = [link for link in self._parting if not link.done and link.lost is None]
        if not waited_for:
            return True
        if time.monotonic() < self._close_by:
            return False
        for link in waited_for:
            if link.waiting:
                _say(
                    f"sfm: left without knowing whether all messages to {link.address} have "
                    f"arrived: it does not answer"
                )
        return True

    def _shut(self) -> None:
        for link in self._exchange.links():
            self._lose(link, "(the own endpoint is closed)")
        self._exchange.close()
        if self._door:
            self._door.close()
        self._router.close()
        self._context.term()
