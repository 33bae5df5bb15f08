"""MPI in a process with an endpoint, such as an engine: COMM_WORLD has the ranks that live.

``from mpi4py import MPI`` in a cell imports the real mpi4py. Its calls use the engine's queue, so
that observers see both. When engines were restarted or added, the next cell has a COMM_WORLD of the
engines that live then.
"""

from __future__ import annotations

import sys

from sfm_kernel._native import Channel, refresh_mpi, set_mpi_world
from sfm_kernel.directory import Member, Name
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import EndpointClosed, PeerLost, SFMError, UnknownName
from sfm_kernel.mpi import library

_used: Endpoint | None = None


def use(endpoint: Endpoint) -> None:
    """Make mpi4py use this endpoint when it is imported. Idempotent.

    COMM_WORLD has all living processes of the endpoint's world that have a rank.

    Raises:
        SFMError: the endpoint has no rank, or MPI uses another endpoint of this process already.
    """
    global _used
    if endpoint.rank is None:
        raise SFMError("MPI needs ranks: give this process one with join(world, rank=...)")
    if _used not in (None, endpoint):
        raise SFMError(f"MPI uses {_used!r} already, and a process has one COMM_WORLD")
    if _used is None:
        sys.meta_path.insert(0, library.Check())
    _used = endpoint
    library.install()
    world = _World(endpoint)
    set_mpi_world(
        inbox=endpoint._inbox,
        members=world.members,
        channel=world.channel,
        is_near=world.is_near,
        lives=world.lives,
        site=world.site,
    )


def refresh(anew: int) -> None:
    """Update MPI's list of living engines, if MPI has begun in this process. Called before each
    cell.

    Args:
        anew: the time at which a cell of the notebook was last stopped or failed, in nanoseconds; 0
            if none was. Some engines may then have made more collective calls than others: all
            begin to count anew.
    """
    refresh_mpi(anew)


class _World:
    """An endpoint as the MPI library uses it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._seen: dict[str, Member] = {}

    def members(self) -> tuple[str, int, list[tuple[int, str, Name]]] | None:
        """The world, this engine's rank among the living engines, and these engines; None if the
        endpoint is closed."""
        if self._endpoint.closed:
            return None
        living = [member for member in self._endpoint.members() if self._endpoint.alive(member)]
        ranked = {member.rank: member for member in living if member.rank is not None}
        by_rank = [ranked[rank] for rank in sorted(ranked)]
        self._seen |= {member.uid: member for member in by_rank}
        rank = [member.uid for member in by_rank].index(self._endpoint.uid)
        engines = [(member.slot, member.uid, member.name) for member in by_rank]
        return self._endpoint.world, rank, engines

    def channel(self, uid: str) -> Channel | None:
        """The channel to a process; None if it is dead, or another process has its name now."""
        try:
            route = self._endpoint._peers.route(self._seen[uid].name)
        except (EndpointClosed, PeerLost, UnknownName):
            return None
        return route.channel if route.peer.uid == uid else None

    def is_near(self, uid: str) -> bool:
        """Whether messages to a process use shared memory."""
        return self._endpoint._peers.is_near(self._seen[uid])

    def site(self, uid: str) -> str:
        """The site of a process, which may be dead."""
        return self._seen[uid].site

    def lives(self, uid: str) -> bool:
        """Whether a process lives."""
        return self._endpoint.alive(self._seen[uid])
