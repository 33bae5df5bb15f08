"""MPI in a process with an endpoint, as engines have: COMM_WORLD is made of the ranks that live.

``from mpi4py import MPI`` in a cell is the real mpi4py. Its calls go through the engine's own
queue, so that observers see both. After engines were restarted, or some were added, the next cell
has a COMM_WORLD of those that live then.
"""

from __future__ import annotations

import sys

from sfm_kernel._native import Channel, refresh_mpi, set_mpi_world
from sfm_kernel.endpoint import Endpoint
from sfm_kernel.errors import EndpointClosed, PeerLost, SFMError, UnknownName
from sfm_kernel.mpi import library
from sfm_kernel.transport.base import Member, Name

_used: Endpoint | None = None


def use(endpoint: Endpoint) -> None:
    """Have mpi4py, when it is imported, speak through this endpoint. Idempotent.

    COMM_WORLD is made of all living processes of its world that have a rank, this one among them.

    Raises:
        SFMError: it has no rank; or MPI speaks through another endpoint of this process already.
    """
    global _used
    if endpoint.rank is None:
        raise SFMError("MPI counts processes: give this one a rank, join(world, rank=...)")
    if _used not in (None, endpoint):
        raise SFMError(f"MPI speaks through {_used!r} already, and a process has one COMM_WORLD")
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
    """Let MPI see which engines live now, if it has begun here. Before each cell.

    Args:
        anew: when the notebook's last cell was stopped or failed, in nanoseconds; 0 if none was.
            Some engines may have made more collective calls by then than others: they begin anew.
    """
    refresh_mpi(anew)


class _World:
    """What the library asks of an endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._seen: dict[str, Member] = {}

    def members(self) -> tuple[str, int, list[tuple[int, str, Name]]] | None:
        """The world, this engine's rank among those that live, and all of them; None at its end."""
        if self._endpoint.closed:
            return None
        living = [one for one in self._endpoint.members() if self._endpoint.alive(one)]
        ranked = {one.rank: one for one in living if one.rank is not None}
        by_rank = [ranked[rank] for rank in sorted(ranked)]
        self._seen |= {one.uid: one for one in by_rank}
        rank = [one.uid for one in by_rank].index(self._endpoint.uid)
        return self._endpoint.world, rank, [(one.slot, one.uid, one.name) for one in by_rank]

    def channel(self, uid: str) -> Channel | None:
        """The way to a process; None where it is gone, or another one has its name now."""
        try:
            route = self._endpoint._peers.route(self._seen[uid].name)
        except (EndpointClosed, PeerLost, UnknownName):
            return None
        return route.channel if route.peer.uid == uid else None

    def is_near(self, uid: str) -> bool:
        """Whether memory is shared with a process, and used."""
        return self._endpoint._peers.is_near(self._seen[uid])

    def site(self, uid: str) -> str:
        """Where a process is, or was."""
        return self._seen[uid].site

    def lives(self, uid: str) -> bool:
        """Whether a process lives."""
        return self._endpoint.alive(self._seen[uid])
