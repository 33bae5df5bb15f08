"""The transport that an endpoint uses, and its routes."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import stat
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import Exchange, Inbox, ZmqSender
from sfm_kernel.errors import EndpointClosed, PeerLost
from sfm_kernel.transport.base import Directory, Member, Name, Route, Transport
from sfm_kernel.transport.zmq.identity import check_key, encrypts, listen

if TYPE_CHECKING:
    # Only the network thread imports zmq: a KeyboardInterrupt, which hits the main thread, would
    # leave it half imported.
    from sfm_kernel.transport.zmq.line import Line

SETTLE_SECONDS = 0.15
"""Nothing has come in for so long after a death: nothing will."""


class ZmqTransport(Transport):
    """Reaches every process whose address answers; encrypted, and for members only.

    Args:
        inbox: the own native Inbox.
        key: the world's secret; WorldAccess if it is empty or short.
        uid: the own member's.
        local: all members are on this machine: listen on its loopback interface only.
    Attributes:
        address: where others reach this process. It listens from now on.
        exchange: the native side of all connections.
        encrypted: connections use CURVE, see ``identity.encrypts``.
        lines: by uid, the state of the open connections; the network thread's.
    Cost: a socket and a thread, until somebody connects or a route is used; then the import of
        zmq (50 ms), two more threads, and four descriptors for each peer.
    """

    kind = "zmq"

    def __init__(self, inbox: Inbox, key: bytes, uid: str, *, local: bool = False) -> None:
        check_key(key)
        self.key, self.encrypted = key, encrypts(local)
        self._local = local
        self.closing = False
        self.lines: dict[str, Line] = {}
        self.addresses: set[str] = set()  # that links lead, or led, to
        self._dead_since: dict[str, float] = {}
        self._listener, self.address = listen(local)
        self._port = self._listener.getsockname()[1]
        self.exchange = Exchange(inbox, uid, self.address)
        self._folder = ""
        self._name: Name = ""
        self._thread = threading.Thread(target=self._run, name="sfm-zmq", daemon=True)
        _open.add(self)

    def start(self, member: Member, directory: Directory) -> None:
        """Serve who connects; after ``directory.join``, from which others know the address."""
        self._folder, self._name = directory.folder, member.name
        self._thread.name = f"sfm-zmq-{member.name}"
        self._thread.start()

    def _run(self) -> None:
        """The network thread: sleeps until ZeroMQ is needed, then works in ``Network``."""
        try:
            asleep = select.poll()
            asleep.register(self._listener, select.POLLIN)
            asleep.register(self.exchange.fd, select.POLLIN)
            asleep.poll()
            if self.exchange.links() or not self.closing:
                from sfm_kernel.transport.zmq.network import Network

                Network(self, self._listener).run()
        finally:
            self._listener.close()

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        if not peer.address:
            return None
        link = self.exchange.link(peer.uid, peer.address)

        def check() -> None:
            if self.closing:
                raise EndpointClosed("this endpoint is closed: join the world again")
            if link.lost is not None or not alive():
                raise PeerLost(peer.name, link.lost or "and did not receive this message")

        return ZmqRoute(peer, ZmqSender(link, peer.name, self._name, check))

    def lost(self, peer: Member) -> bool:
        """Whether its process is gone as far as connections tell, or messages were lost.

        For a process of another machine (no segment of it is here) this opens a connection, so
        that the death of one that only sends is seen as well.
        """
        if self.exchange.broken(peer.uid):
            return True
        link = self.exchange.known(peer.uid)
        if link is not None:
            return link.lost is not None
        if self._local:
            return False  # the directory knows better: a segment that is missing says enough
        is_remote = not os.path.exists(os.path.join(self._folder, f"{peer.uid}.seg"))
        if is_remote and peer.address and not self.closing:
            self.exchange.link(peer.uid, peer.address)
        return False

    def settled(self, peer: Member) -> bool:
        """Whether nothing has come from a dead peer for a while, and nothing waits to be read."""
        if self.exchange.known(peer.uid) is None and self.exchange.heard(peer.uid) is None:
            return True
        quiet_since = self._dead_since.setdefault(peer.uid, time.monotonic())
        quiet_since = max(quiet_since, self.exchange.heard(peer.uid) or 0.0)
        if self.exchange.idle_at - quiet_since >= SETTLE_SECONDS:
            return True
        self.exchange.ring()  # look again whether something waits
        return False

    def close(self) -> None:
        """Stop. Returns when all that was sent has arrived, or a peer does not answer."""
        if self.closing:
            return
        self.closing = True
        _open.discard(self)
        self.exchange.ring()
        if self._thread.ident is None:  # never started
            self._listener.close()
        else:
            self._thread.join()

    def abandon(self) -> None:
        """In a forked child: give up its copies of the parent's connections.

        They would make the parent look alive after its death. ZeroMQ keeps their numbers to
        itself; they are found by their ports.
        """
        self.closing = True
        # Not from the exchange, whose locks another thread of the parent may have held.
        peers = {address.removeprefix("tcp://") for address in self.addresses}
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(fd).st_mode) and _ends_at(fd, self._port, peers):
                    os.dup2(null, fd, inheritable=False)
        os.close(null)


class ZmqRoute(Route):
    """Sends through the link to one peer."""

    kind = "zmq"

    def __init__(self, peer: Member, sender: ZmqSender) -> None:
        super().__init__(peer)
        self.ring = sender

    def send(self, packet: Any, buffering: int) -> None:
        self.ring.send(packet, buffering)

    def close(self) -> None:
        """The link stays: acknowledgements use it too, and what was sent is still delivered."""


_open: weakref.WeakSet[ZmqTransport] = weakref.WeakSet()


def _ends_at(fd: int, port: int, peers: set[str]) -> bool:
    """Whether a TCP socket's own port is ``port``, or its other end one of ``peers``."""
    with socket.socket(fileno=os.dup(fd)) as connection:
        if connection.family != socket.AF_INET or connection.type != socket.SOCK_STREAM:
            return False
        if connection.getsockname()[1] == port:
            return True
        host, peer_port = connection.getpeername()
        return f"{host}:{peer_port}" in peers


def _abandon_all() -> None:
    for transport in list(_open):
        transport.abandon()
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)
