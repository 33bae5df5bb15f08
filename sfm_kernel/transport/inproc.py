"""Endpoints of one process: a packet goes from one inbox into the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

from sfm_kernel.errors import PeerLost
from sfm_kernel.transport.base import Member, Route, Transport

_inboxes: dict[str, Any] = {}
_lock = threading.Lock()


class InprocTransport(Transport):
    """Reaches the other endpoints of this process, and itself.

    Args:
        uid: of the own member, known to the others of this process until ``close``.
        inbox: the own native Inbox.
        outflow: makes the account of one peer (``Outflow(inbox, name, uid)``).
    """

    kind = "inproc"

    def __init__(self, uid: str, inbox: Any, outflow: Callable[[Any, str, str], Any]) -> None:
        self._uid, self._inbox, self._outflow = uid, inbox, outflow
        with _lock:
            _inboxes[uid] = inbox

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        with _lock:
            inbox = _inboxes.get(peer.uid)
        if inbox is None:
            return None
        outflow = self._outflow(self._inbox, repr(peer.name), peer.uid)
        return InprocRoute(peer, inbox, inbox.lane(self._uid, outflow), outflow)

    def is_near(self, peer: Member) -> bool:
        with _lock:
            return peer.uid in _inboxes

    def close(self) -> None:
        with _lock:
            _inboxes.pop(self._uid, None)


class InprocRoute(Route):
    """Delivers into the peer's inbox from the sender's own thread."""

    kind = "inproc"

    def __init__(self, peer: Member, inbox: Any, lane: int, outflow: Any) -> None:
        super().__init__(peer)
        self._inbox, self._lane, self._outflow = inbox, lane, outflow

    def _check(self) -> None:
        if self._inbox.closed:
            raise PeerLost(self.peer.name, "and did not receive this message")

    def send(self, packet: Any, buffering: int) -> None:
        self._outflow.send(self._inbox, self._lane, packet, buffering, self._check)

    def close(self) -> None:
        """Nothing to release: the inbox belongs to the peer."""


def _abandon_all() -> None:
    """In a forked child: the inboxes are the parent's, and another thread may have held the lock.

    A child that joins reaches its parent as any other process does.
    """
    global _lock
    _lock = threading.Lock()
    _inboxes.clear()


os.register_at_fork(after_in_child=_abandon_all)
