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
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sfm_kernel.errors import EndpointClosed, PeerLost
from sfm_kernel.transport.base import Directory, Member, Route, Transport
from sfm_kernel.transport.shm import Outflow
from sfm_kernel.transport.zmq.identity import check_key, listen
from sfm_kernel.transport.zmq.link import Link
from sfm_kernel.transport.zmq.wake import Wake

if TYPE_CHECKING:
    from sfm_kernel.transport.zmq.network import Network

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
    Cost: a socket and a thread, until somebody connects or a route is used; then the import of
        zmq (50 ms), two more threads, and four descriptors for each peer.
    """

    kind = "zmq"

    def __init__(self, inbox: Any, key: bytes, uid: str, *, local: bool = False) -> None:
        check_key(key)
        self.inbox, self.key, self.uid = inbox, key, uid
        self._local = local
        self.closing = False
        self.links: dict[str, Link] = {}
        self.unopened: deque[Link] = deque()
        self._dead_since: dict[str, float] = {}
        self._network: Network | None = None
        self._linking = threading.Lock()
        self._listener, self.address = listen(local)
        self._port = self._listener.getsockname()[1]
        self._wake = Wake()
        self._folder = ""
        self._thread = threading.Thread(target=self._run, name="sfm-zmq", daemon=True)
        _open.add(self)

    def start(self, member: Member, directory: Directory) -> None:
        """Serve who connects; after ``directory.join``, from which others know the address."""
        self._folder = directory.folder
        self._thread.name = f"sfm-zmq-{member.name}"
        self._thread.start()

    def _run(self) -> None:
        """The network thread: sleeps until ZeroMQ is needed, then works in ``Network``."""
        try:
            asleep = select.poll()
            asleep.register(self._listener, select.POLLIN)
            asleep.register(self._wake.fd, select.POLLIN)
            asleep.poll()
            if self.links or not self.closing:
                from sfm_kernel.transport.zmq.network import Network

                self._network = Network(self, self._listener, self._wake)
                self._network.run()
        finally:
            self._listener.close()
            self._wake.close()

    def link(self, uid: str, address: str) -> Link:
        """The link to a peer. If it is new, the network thread is about to open it."""
        with self._linking:
            link = self.links.get(uid)
            if link is None:
                link = Link(uid, address, self.uid, self.address)
                self.unopened.append(link)
                self.links[uid] = link
        if self.unopened:
            self._wake.ring()
        return link

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        if not peer.address:
            return None
        link = self.link(peer.uid, peer.address)
        with self._linking:
            if link.outflow is None:
                link.outflow = Outflow(self.inbox, repr(peer.name))
        return ZmqRoute(peer, self, link, alive)

    def lost(self, peer: Member) -> bool:
        """Whether its process is gone as far as connections tell, or messages were lost.

        For a process of another machine (no segment of it is here) this opens a connection, so
        that the death of one that only sends is seen as well.
        """
        source = self._network.sources.get(peer.uid) if self._network else None
        if source is not None and source.broken:
            return True
        link = self.links.get(peer.uid)
        if link is not None:
            return link.lost is not None
        if self._local:
            return False  # the directory knows better: a segment that is missing says enough
        is_remote = not os.path.exists(os.path.join(self._folder, f"{peer.uid}.seg"))
        if is_remote and peer.address and not self.closing:
            self.link(peer.uid, peer.address)
        return False

    def settled(self, peer: Member) -> bool:
        """Whether nothing has come from a dead peer for a while, and nothing waits to be read."""
        network = self._network
        if network is None:
            return True
        now = time.monotonic()
        quiet_since = self._dead_since.setdefault(peer.uid, now)
        if source := network.sources.get(peer.uid):
            quiet_since = max(quiet_since, source.last)
        if network.idle_at - quiet_since >= SETTLE_SECONDS:
            return True
        self._wake.ring()  # look again whether something waits
        return False

    def hurry(self, link: Link) -> None:
        """Let the network thread send what is left in the outbox, also after an interrupt."""
        if link.waiting:
            self._wake.ring()

    def close(self) -> None:
        """Stop. Returns when all that was sent has arrived, at the latest after 2 s."""
        if self.closing:
            return
        self.closing = True
        _open.discard(self)
        self._wake.ring()
        if self._thread.ident is None:  # never started
            self._listener.close()
            self._wake.close()
        else:
            self._thread.join()

    def abandon(self) -> None:
        """In a forked child: give up its copies of the parent's connections.

        They would make the parent look alive after its death. ZeroMQ keeps their numbers to
        itself; they are found by their ports.
        """
        self.closing = True
        peers = {link.address.removeprefix("tcp://") for link in self.links.values()}
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(fd).st_mode) and _ends_at(fd, self._port, peers):
                    os.dup2(null, fd, inheritable=False)
        os.close(null)


class ZmqRoute(Route):
    """Sends through the link to one peer."""

    kind = "zmq"

    def __init__(
        self, peer: Member, transport: ZmqTransport, link: Link, alive: Callable[[], bool]
    ) -> None:
        super().__init__(peer)
        self._transport, self._link, self._alive = transport, link, alive

    def _check_link(self) -> None:
        if self._transport.closing:
            raise EndpointClosed("this endpoint is closed: join the world again")
        if self._link.lost is not None:
            raise PeerLost(self.peer.name, self._link.lost or "and did not receive this message")

    def _check(self) -> None:
        self._check_link()
        if not self._alive():
            raise PeerLost(self.peer.name, "and did not receive this message")

    def send(self, packet: Any, buffering: int) -> None:
        if self._link.is_up:
            self._check_link()
        else:
            self._check()
        try:
            self._link.send(packet, buffering, self._check)
        finally:
            self._transport.hurry(self._link)
        self._check_link()  # lost meanwhile: the packet went nowhere
        if buffering == 0:
            self._link.outflow.drain(self._check)

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
