"""Sends to the members of a group only, never to a process that has taken a dead member's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.endpoint import Context
from sfm_kernel.errors import PeerLost

if TYPE_CHECKING:
    from sfm_kernel._native import Channel
    from sfm_kernel.directory import Member
    from sfm_kernel.endpoint import Endpoint


class MembersOnly(Context):
    """A context that sends only to these members; see ``Context``.

    A successor has a dead member's name but is not a node of the group: messages to it would be
    lost. This is checked with the first message to a member, and after a loss.
    """

    _may_succeed = False

    def __init__(self, sfm: Endpoint, name: str, members: Sequence[Member]) -> None:
        super().__init__(sfm, name)
        self._uids = {member.name: member.uid for member in members}

    def _channel(self, dest: Any) -> Channel:
        if self._peers.route(dest).peer.uid != self._uids[dest]:
            raise PeerLost(dest, "and the process that has its name now is no member of the group")
        return super()._channel(dest)
