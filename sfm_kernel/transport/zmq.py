"""Messages between machines: over ZeroMQ, sealed, for processes that have the world's key.

In a world of one machine nothing listens, unless ``SFM_TRANSPORT=zmq`` asks for it. The native core
does the work, in a thread of its own that does not need the GIL (``native/src/net``); this module
configures it, and answers the endpoint's questions.

A sender keeps each message until it has arrived. When a connection breaks, a new one is made and
lost data is sent again. A peer that cannot be reached is not dead: senders wait for it until its
kernel or the directory says that its process has ended, or for ``SFM_UNREACHABLE`` seconds.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import weakref
from collections.abc import Callable

from sfm_kernel._native import (
    Channel,
    Exchange,
    Inbox,
    Link,
    Member,
    Name,
    abandon_connections,
    check_key,
)
from sfm_kernel.errors import EndpointClosed, PeerLost, SFMError, WorldError
from sfm_kernel.transport.address import (
    listening_ip,
    most_strangers,
    raise_descriptors,
)
from sfm_kernel.transport.base import Changes, Directory, Gateway, Route, Transport
from sfm_kernel.transport.keys import KeyPair, libraries

MOST_MET = 64
"""The members to which a newcomer connects at once, at most."""


class ZmqTransport(Transport):
    """Reaches every process whose address answers; for members only.

    Args:
        inbox: this process's native Inbox.
        key: the world's secret; WorldAccess if it is empty or short.
        pair: this process's own keys, whose public half the directory announces.
        uid, site: this process's.
        table: the file that announces the members, if all are on this machine: listens on the
            loopback interface.
        context: the address of pyzmq's context that the directory's client has.
    Attributes:
        address: others reach this process there. It listens from now on.
        exchange: the native side of all connections.
    Cost: a thread (and two of libzmq's without a ``context``), and nine descriptors; up to four
    more for each peer.
    """

    kind = "zmq"

    def __init__(
        self,
        inbox: Inbox,
        key: bytes,
        pair: KeyPair,
        uid: str,
        site: str = "",
        *,
        table: str | None = None,
        context: int | None = None,
    ) -> None:
        check_key(key)
        patience = _patience()
        self._local, self._folder, self.closing = table is not None, "", False
        self._name: Name = ""
        self._site = ""
        self._gateways: list[Gateway] = []
        raise_descriptors()
        address, strangers = f"tcp://{listening_ip(self._local)}:*", most_strangers()
        own = pair.secret, pair.public
        self.exchange = Exchange(
            inbox, uid, key, own, site, address, strangers, patience,
            libraries=libraries(), table=table, context=context,
        )  # fmt: skip
        self.address = self.exchange.address
        _open.add(self)

    def start(self, member: Member, directory: Directory) -> None:
        """Serve connections; after ``directory.join``, which announces the address to others."""
        self._folder, self._name, self._site = directory.folder, member.name, member.site
        self.exchange.start(f"sfm-zmq-{member.name}")
        directory.watch(self._update)
        self._meet(member, directory)

    def _meet(self, own: Member, directory: Directory) -> None:
        """Begin to connect to members that share no memory with this process.

        A first message on an open connection takes half a round trip, on a new one five. Who
        cannot be reached costs an attempt: it is found out again at the first message.
        """
        far = (peer for peer in directory.listed() if self._is_far(peer) and peer.uid != own.uid)
        for peer in itertools.islice(far, MOST_MET):
            if directory.alive(peer):
                self._link(peer)

    def _is_far(self, peer: Member) -> bool:
        """Whether it can be reached, and has its segment on another machine; or all are far."""
        is_near = os.path.exists(os.path.join(self._folder, f"{peer.uid}.seg"))
        return bool(peer.address) and self._reads(peer) and (self._local or not is_near)

    def _reads(self, peer: Member) -> bool:
        """Whether it reads the frames of this site."""
        return not peer.is_plain or peer.site == self._site

    def _update(self, changes: Changes) -> None:
        with contextlib.suppress(EndpointClosed):
            if changes.gateways != self._gateways:
                self._gateways = changes.gateways
                self.exchange.set_gateways(
                    [(gateway.uid, gateway.site, gateway.address) for gateway in changes.gateways]
                )
            self.exchange.announce([(member.uid, member.public) for member in changes.members])
            self.exchange.report_departed(list(changes.departed))
            for uid, why in changes.departed.items():
                if why:
                    self.exchange.expel(uid, why)

    def _link(self, peer: Member) -> Link:
        self.exchange.announce([(peer.uid, peer.public)])
        return self.exchange.link(peer.uid, peer.address, peer.site)

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        if not peer.address:  # it does not listen
            return None
        if not self._reads(peer):
            raise SFMError(
                f"process {peer.name!r} is a program with ZeroMQ alone, which reads no frames of "
                f"other sites: only processes of site {peer.site!r} can send to it; this one is of "
                f"{self._site!r}. Let one of them forward the message"
            )
        link = self._link(peer)

        def check() -> None:
            if self.closing:
                raise EndpointClosed("this endpoint is closed: join the world again")
            if link.lost is not None or not alive():
                raise PeerLost(peer.name, link.lost or "and did not receive this message")

        channel = Channel.link(link, peer.name, self._name, check, peer.is_plain)
        return Route(peer, channel)

    def lost(self, peer: Member) -> bool:
        """Whether connections show that the process has ended, or what it sent made no sense.

        For a process of another machine (which has no segment on this one) this opens a connection,
        so that the death of a process that only sends is noticed as well.
        """
        if self.closing:
            return False  # links end then, whether their peers live or not
        link = self.exchange.known(peer.uid)
        if link is not None:
            return link.lost is not None
        if not self._local and self._is_far(peer):
            self._link(peer)  # on one machine the directory knows who has ended
        return False

    def why_lost(self, peer: Member) -> str:
        link = self.exchange.known(peer.uid)
        return "" if link is None else link.lost or ""

    def silence(self, peer: Member) -> tuple[float, str] | None:
        """Seconds since the peer last answered, and what gateways report about it; None if up."""
        link = None if self.closing else self.exchange.known(peer.uid)
        return None if link is None else link.silence

    def settled(self, peer: Member) -> bool:
        return self.closing or self.exchange.settled(peer.uid)

    def close(self) -> None:
        """Stop. Returns when everything sent has arrived, or a peer does not answer."""
        if self.closing:
            return
        self.closing = True
        _open.discard(self)
        self.exchange.close()


def _patience() -> float | None:
    """``SFM_UNREACHABLE``: seconds after which a peer that cannot be reached is given up."""
    text = os.environ.get("SFM_UNREACHABLE", "")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds < math.inf:
        raise WorldError(
            f"SFM_UNREACHABLE={text!r}: give the seconds after which to give up a process that "
            f"cannot be reached; unset, processes wait for it as long as it takes"
        )
    return seconds


_open: weakref.WeakSet[ZmqTransport] = weakref.WeakSet()


def _abandon_all() -> None:
    if _open:
        abandon_connections()
    for transport in list(_open):
        transport.closing = True
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)
