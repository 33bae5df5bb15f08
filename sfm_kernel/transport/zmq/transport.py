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

from sfm_kernel._native import Exchange, Inbox, Way
from sfm_kernel.errors import EndpointClosed, PeerLost
from sfm_kernel.transport.base import Directory, Member, Name, Route, Transport
from sfm_kernel.transport.zmq.identity import Room, check_key, listen
from sfm_kernel.transport.zmq.limits import raise_descriptors

if TYPE_CHECKING:
    # Only the network thread imports zmq: a KeyboardInterrupt, which hits the main thread, would
    # leave it half imported.
    from sfm_kernel.transport.zmq.line import Line

SETTLE_SECONDS = 0.15
"""Nothing has come in for so long after a death: nothing will."""


class ZmqTransport(Transport):
    """Reaches every process whose address answers; for members only.

    Args:
        inbox: the own native Inbox.
        key: the world's secret; WorldAccess if it is empty or short.
        uid: the own member's.
        local: all members are on this machine.
        folder: the world's, to listen there on a Unix socket. Without it, on TCP: encrypted, and
            with ``local`` on the loopback interface.
    Attributes:
        address: where others reach this process. It listens from now on.
        exchange: the native side of all connections.
        room: the folder; None with TCP.
        lines: by uid, the state of the open connections; the network thread's.
    Cost: a socket and a thread, until somebody connects or a route is used; then the import of
        zmq (50 ms), two more threads, and four descriptors for each peer.
    """

    kind = "zmq"

    def __init__(
        self, inbox: Inbox, key: bytes, uid: str, *, local: bool = False, folder: str = ""
    ) -> None:
        check_key(key)
        self.key, self._uid, self._local = key, uid, local
        self.room = Room(folder) if folder else None
        self.closing = False
        self.lines: dict[str, Line] = {}
        self.addresses: set[str] = set()  # that links lead, or led, to
        self._dead_since: dict[str, float] = {}
        if self.room:
            self._listener, self.address = self.room.listen(uid)
        else:
            raise_descriptors()
            self._listener, self.address = listen(local)
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
            self._stop_listening()

    def _stop_listening(self) -> None:
        self._listener.close()
        if self.room:
            self.room.close(self._uid)

    def endpoint(self, address: str) -> str:
        """What ZeroMQ has to be told to connect to a member's address, or to bind the own one."""
        return self.room.endpoint(address) if self.room else address

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        if not peer.address:  # it was not told to listen
            return None
        link = self.exchange.link(peer.uid, peer.address)

        def check() -> None:
            if self.closing:
                raise EndpointClosed("this endpoint is closed: join the world again")
            if link.lost is not None or not alive():
                raise PeerLost(peer.name, link.lost or "and did not receive this message")

        return Route(peer, Way.link(link, peer.name, self._name, check))

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
            self._stop_listening()
        else:
            self._thread.join()

    def abandon(self) -> None:
        """In a forked child: give up its copies of the parent's connections.

        They would make the parent look alive after its death. ZeroMQ keeps their numbers to
        itself; they are found by their names.
        """
        self.closing = True
        # Not from the exchange, whose locks another thread of the parent may have held.
        own, peers = _name(self.address), set(map(_name, self.addresses))
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in map(int, os.listdir("/proc/self/fd")):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(fd).st_mode) and _ends_at(fd, own, peers):
                    os.dup2(null, fd, inheritable=False)
        os.close(null)


_open: weakref.WeakSet[ZmqTransport] = weakref.WeakSet()


def _name(address: str) -> str:
    """What tells a member's sockets from all others: "IP:port", or the name of a file."""
    return address.removeprefix("tcp://") if address.startswith("tcp://") else _file(address)


def _file(path: Any) -> str:
    return os.path.basename(os.fsdecode(path))


def _ends_at(fd: int, own: str, peers: set[str]) -> bool:
    """Whether a socket is bound to ``own``, or its other end is one of ``peers``."""
    with socket.socket(fileno=os.dup(fd)) as connection:
        if connection.type != socket.SOCK_STREAM:
            return False
        if connection.family == socket.AF_UNIX:
            return (
                _file(connection.getsockname()) == own or _file(connection.getpeername()) in peers
            )
        if connection.family != socket.AF_INET:
            return False
        # The port alone: its address may be another one here than for others.
        if str(connection.getsockname()[1]) == own.rpartition(":")[2]:
            return True
        host, port = connection.getpeername()
        return f"{host}:{port}" in peers


def _abandon_all() -> None:
    for transport in list(_open):
        transport.abandon()
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)
