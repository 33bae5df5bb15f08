"""Endpoints of one process: a packet goes from one inbox into the other."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from sfm_kernel._native import Channel, Inbox, Member
from sfm_kernel.errors import PeerLost
from sfm_kernel.transport.base import Route, Transport

_inboxes: dict[str, Inbox] = {}
_lock = threading.Lock()


class InprocTransport(Transport):
    """Reaches the other endpoints of this process, and itself.

    Args:
        member: the endpoint's; the process's other endpoints know it until ``close``.
        inbox: its native Inbox.
    """

    kind = "inproc"

    def __init__(self, member: Member, inbox: Inbox) -> None:
        self._member, self._inbox = member, inbox
        with _lock:
            _inboxes[member.uid] = inbox

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        with _lock:
            inbox = _inboxes.get(peer.uid)
        if inbox is None:
            return None

        def check() -> None:
            if inbox.closed:
                raise PeerLost(peer.name, "and did not receive this message")

        me = self._member
        return Route(
            peer, Channel.local(self._inbox, me.uid, inbox, peer.uid, peer.name, me.name, check)
        )

    def is_near(self, peer: Member) -> bool:
        with _lock:
            return peer.uid in _inboxes

    def close(self) -> None:
        with _lock:
            _inboxes.pop(self._member.uid, None)


def _abandon_all() -> None:
    """In a forked child: the inboxes are the parent's, and another thread may have held the lock.

    A child that joins reaches its parent as any other process does.
    """
    global _lock
    _lock = threading.Lock()
    _inboxes.clear()


os.register_at_fork(after_in_child=_abandon_all)
