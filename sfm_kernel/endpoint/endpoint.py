"""Endpoint: the calls that users make.

Source: SFM paper, section 2.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import operator
import os
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from sfm_kernel._native import Calls
from sfm_kernel.endpoint.callbacks import Callback, Callbacks
from sfm_kernel.endpoint.calls import call, seconds
from sfm_kernel.endpoint.peers import Peers
from sfm_kernel.errors import (
    AddressError,
    EndpointClosed,
    PeerLost,
    RecvTimeout,
    SFMError,
    WouldBlock,
)
from sfm_kernel.message import Message, Packet, pack
from sfm_kernel.transport.base import Directory, Member, Name, Route, Transport

BUFFERING = 64 << 20
"""Bytes of unreceived messages that one sender may leave in one inbox before ``send`` waits."""


class Endpoint(Calls):
    """One process's end of a world. Made by ``sfm_kernel.join``; may be used from any thread.

    ``send``, ``recv``, ``recv_nb`` and ``peek`` are native (``native/src/py/calls.rs``).
    """

    def __init__(
        self,
        member: Member,
        directory: Directory,
        inbox: Any,
        transports: Iterable[Transport],
        *,
        kinds: Iterable[str] = ("inproc", "shm", "zmq"),
        buffering: int = BUFFERING,
        size: int | None = None,
    ) -> None:
        self._member, self._directory, self._inbox = member, directory, inbox
        self._transports = list(transports)
        self._peers = Peers(member, directory, self._transports, kinds, lambda: inbox.closed)
        self._wire(inbox, self._peers.rings, self._peers.ranks)
        self._callbacks = Callbacks(inbox)
        self._size = size
        self.buffering = buffering
        about = {key: getattr(member, key) for key in ("name", "rank", "pid", "host", "uid")}
        inbox.set_info(json.dumps(about))
        self._network = threading.Thread(
            target=inbox.serve,
            args=(self._callbacks.choose,),
            name=f"sfm-network-{member.name}",
            daemon=True,
        )
        self._network.start()
        _open.add(self)

    # ---- who ----

    @property
    def name(self) -> Name:
        """What addresses this process; its rank where it was given no name."""
        return self._member.name

    @property
    def rank(self) -> int | None:
        """0, 1, 2 …, or None for a guest such as a notebook."""
        return self._member.rank

    @property
    def size(self) -> int:
        """How many ranked processes the world has: fixed by ``run``, else those that live now."""
        if self._size is not None:
            return self._size
        return sum(one.rank is not None and self._peers.alive(one) for one in self.members())

    @property
    def world(self) -> str:
        """The world's name."""
        return self._directory.world

    @property
    def folder(self) -> str:
        """The world's folder in shared memory, for observers."""
        return self._directory.folder

    @property
    def buffering(self) -> int:
        """Bytes that may wait unreceived at one destination before ``send`` waits.

        0 makes every ``send`` wait until its message was received, which shows what buffering
        hides: programs that work only while messages are small.
        """
        return self._buffering

    @buffering.setter
    def buffering(self, nbytes: int) -> None:
        nbytes = operator.index(nbytes)
        if not 0 <= nbytes < 1 << 64:
            raise ValueError(f"buffering is a number of bytes, 0 or more, not {nbytes}")
        self._buffering = nbytes

    @property
    def closed(self) -> bool:
        """Whether the endpoint has left its world."""
        return bool(self._inbox.closed)

    def members(self) -> list[Member]:
        """Everybody in the world, the dead that nobody replaced among them, as known now."""
        return self._peers.members()

    def alive(self, member: Member) -> bool:
        """Whether this member still runs and has not left."""
        return self._peers.alive(member)

    def wait_for(self, *names: Name, timeout: float | None = None) -> None:
        """Return when every one of ``names`` (or ranks) has joined and lives.

        Raises:
            RecvTimeout: somebody was missing after ``timeout`` seconds; the message names them.
        """
        deadline = None if timeout is None else time.monotonic() + seconds(timeout)
        while True:
            living = [one for one in self.members() if self._peers.alive(one)]
            there = {one.name for one in living} | {one.rank for one in living}
            missing = [name for name in names if name not in there]
            if not missing:
                return
            if self.closed:
                raise EndpointClosed("this endpoint was closed while it waited for others")
            if deadline is not None and time.monotonic() >= deadline:
                raise RecvTimeout(f"not joined within {timeout} s: {missing}")
            time.sleep(0.005)

    def route_kind(self, name: Name) -> str:
        """How messages to ``name`` travel: "inproc", "shm" or "zmq"."""
        return self._peers.route(name).kind

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"rank {self.rank}"
        return f"<Endpoint {self.name!r} of world {self.world!r}, {state}>"

    # ---- what the native send, recv, recv_nb and peek leave to Python ----

    def _send_otherwise(self, dest: Any, attributes: dict[str, Any]) -> None:
        """Send where there is no ring (yet): the first message to somebody, and other machines."""
        try:
            route = self._peers.route(dest)
        except TypeError:
            raise AddressError(f"dest is a name or a rank, not {dest!r}") from None
        packet = self._pack(route, attributes)
        try:
            route.send(packet, self._buffering)
        except PeerLost as lost:
            self._send_after_loss(dest, attributes, lost, route)

    def _send_after_loss(
        self, dest: Name, attributes: dict[str, Any], lost: PeerLost, failed: Any
    ) -> None:
        """Send to the process that has taken the place of the lost one, if there is one.

        ``failed`` is the way that led to the lost one, or that way's ring.
        """
        self._peers.give_up(dest, failed)
        successor = self._peers.successor(dest)
        if successor is None:
            raise lost
        successor.send(self._pack(successor, attributes), self._buffering)

    def _pack(self, route: Route, attributes: dict[str, Any]) -> Packet:
        return pack({"dest": route.peer.name, "src": self._member.name, **attributes})

    def _canonical(self, src: Any, news: bool) -> Any:
        return self._peers.canonical(src, news)

    def _waiter(self, template: dict[str, Any]) -> tuple[str, Callable[[], None]]:
        """Called when a receive is about to sleep: what it waits for, and what to check."""
        if threading.current_thread() is self._network:
            raise SFMError(
                "a callback runs in the network thread, which brings the messages in: it cannot "
                "wait for one. Use recv_nb, or let the callback set an event for another thread"
            )
        if "src" in template:
            template["src"] = self._peers.canonical(template["src"])
        return call("recv", template), self._peers.watch(template)

    def _timed_out(self, timeout: float, template: dict[str, Any]) -> RecvTimeout:
        return RecvTimeout(
            f"no message matched {call('recv', template)} within {timeout:g} s; "
            f"{self._inbox.depth} others are queued"
        )

    def _would_block(self, template: dict[str, Any]) -> WouldBlock:
        return WouldBlock(f"no queued message matches {call('recv_nb', template)}")

    # ---- callbacks ----

    def regcb(self, function: Callable[[Message], object], /, **template: Any) -> Callback:
        """Call ``function(message)`` for every later message that matches, until unregistered.

        The call comes from the network thread, also while this process computes. It consumes the
        message: ``recv`` does not see it. Of several callbacks the first registered gets it. What
        the function raises is reported on stderr, and the next message is still served.

        Args:
            function: called with one Message; it may ``send``, but not wait in ``recv``.
            template: as for ``recv``.
        Returns:
            The registration, with ``unregister()``; also a context manager.
        Source: SFM paper, section 2 (Table 1).
        """
        if not callable(function):
            raise TypeError(f"regcb needs a function that takes a message, not {function!r}")
        if self.closed:
            raise EndpointClosed("this endpoint is closed: join the world again")
        if "src" in template:
            template["src"] = self._peers.canonical(template["src"])
        return self._callbacks.add(function, template)

    def show_running(self, running: bool) -> None:
        """Tell observers whether user code is running ("running") or not ("idle")."""
        self._inbox.set_running(running)

    # ---- end ----

    def close(self) -> None:
        """Leave the world. Blocked calls end with EndpointClosed; what was sent is delivered.

        Messages that were not received are gone. Harmless when repeated.
        """
        if self not in _open:
            return
        # From the last to the first, each even if another fails or Stop interrupts it.
        with contextlib.ExitStack() as steps:
            steps.callback(self._directory.close)
            steps.callback(self._leave)
            steps.callback(self._peers.forget)
            for transport in self._transports:
                if transport.kind != "zmq":
                    steps.callback(transport.close)
            steps.callback(self._end_network_thread)
            steps.callback(self._inbox.close)
            for transport in self._transports:
                if transport.kind == "zmq":  # sends what is under way; needs the inbox for that
                    steps.callback(transport.close)
            try:
                _open.remove(self)  # last, so that an interrupt comes before it or runs the steps
            except KeyError:  # another thread was faster
                steps.pop_all()

    def _leave(self) -> None:
        with contextlib.suppress(SFMError, OSError):  # the world may be gone
            self._directory.leave(self._member)

    def _end_network_thread(self) -> None:
        if threading.current_thread() is not self._network:  # a callback may close its endpoint
            self._network.join()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_open: set[Endpoint] = set()
"""The endpoints of this process. Strong references: an endpoint that nobody names any more may
still be sending to others, or serving callbacks."""


@atexit.register
def _close_all() -> None:
    for endpoint in list(_open):
        with contextlib.suppress(SFMError, OSError):
            endpoint.close()


def _abandon_all() -> None:
    """In a forked child: the endpoints are the parent's."""
    for endpoint in list(_open):
        endpoint._inbox.abandon()
    _open.clear()


os.register_at_fork(after_in_child=_abandon_all)
