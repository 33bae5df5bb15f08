"""Collectives of neighbours: everybody gives to its destinations what these take from sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.base.constants import PROC_NULL
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.buffers import calls
from sfm_kernel.mpi.comm.driver import Work, blocking, prepared, started
from sfm_kernel.mpi.comm.intra_blocks import IntraBlocks, packed
from sfm_kernel.mpi.comm.intra_objects import dressed, undressed
from sfm_kernel.mpi.engine.communicator import CommState

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers import Blocks
    from sfm_kernel.mpi.comm.topology import Topology
    from sfm_kernel.mpi.requests.prequest import Prequest
    from sfm_kernel.mpi.requests.request import Request


class Neighbours(Handle[CommState]):
    """Collectives of neighbours.

    All members make the call, and each sends to its ``outedges`` and receives from its
    ``inedges``: one block, or object, for each of these, in their order. Blocks of neighbours that
    are PROC_NULL (beyond the open edge of a grid) stay as they were; objects of theirs are None.

    Blocks: until what the own neighbours send is here. The calls that begin with I return at once,
    those that end with _init when they are prepared.
    """

    __slots__ = ()

    def neighbor_allgather(self, sendobj: Any) -> list[Any]:
        """Give an object to every destination: the objects of all sources."""
        return blocking(self, _allgather_objects, sendobj)  # type: ignore[no-any-return]

    def neighbor_alltoall(self, sendobj: Sequence[Any] | None) -> list[Any]:
        """Give each destination an object of its own: the objects of all sources."""
        return blocking(self, _alltoall_objects, sendobj)  # type: ignore[no-any-return]

    def Neighbor_allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Give the same elements to every destination; one block from each source."""
        blocking(self, _allgather, sendbuf, recvbuf, False)

    def Neighbor_allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As ``Neighbor_allgather``; the blocks may have different lengths."""
        blocking(self, _allgather, sendbuf, recvbuf, True)

    def Neighbor_alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """A block to each destination, and one from each source."""
        blocking(self, _alltoall, sendbuf, recvbuf, False)

    def Neighbor_alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As ``Neighbor_alltoall``; the blocks may have different lengths."""
        blocking(self, _alltoall, sendbuf, recvbuf, True)

    def Neighbor_alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """As ``Neighbor_alltoallv``; the blocks may have different datatypes."""
        blocking(self, _alltoallw, sendbuf, recvbuf)

    # ---- without waiting ----

    def Ineighbor_allgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin a ``Neighbor_allgather``."""
        return started(self, _allgather, sendbuf, recvbuf, False)

    def Ineighbor_allgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin a ``Neighbor_allgatherv``."""
        return started(self, _allgather, sendbuf, recvbuf, True)

    def Ineighbor_alltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin a ``Neighbor_alltoall``."""
        return started(self, _alltoall, sendbuf, recvbuf, False)

    def Ineighbor_alltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin a ``Neighbor_alltoallv``."""
        return started(self, _alltoall, sendbuf, recvbuf, True)

    def Ineighbor_alltoallw(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin a ``Neighbor_alltoallw``."""
        return started(self, _alltoallw, sendbuf, recvbuf)

    # ---- again and again ----

    def Neighbor_allgather_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A ``Neighbor_allgather`` for later."""
        return prepared(self, _allgather, sendbuf, recvbuf, False)

    def Neighbor_allgatherv_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A ``Neighbor_allgatherv`` for later."""
        return prepared(self, _allgather, sendbuf, recvbuf, True)

    def Neighbor_alltoall_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A ``Neighbor_alltoall`` for later."""
        return prepared(self, _alltoall, sendbuf, recvbuf, False)

    def Neighbor_alltoallv_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A ``Neighbor_alltoallv`` for later."""
        return prepared(self, _alltoall, sendbuf, recvbuf, True)

    def Neighbor_alltoallw_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A ``Neighbor_alltoallw`` for later."""
        return prepared(self, _alltoallw, sendbuf, recvbuf)


# ---- plans: see ``driver`` ----


def _allgather_objects(state: CommState, value: Any) -> Work:
    targets = len(_destinations(state))
    return lambda driver: _objects(driver, [value] * targets)


def _alltoall_objects(state: CommState, values: Sequence[Any] | None) -> Work:
    targets = len(_destinations(state))
    given = [None] * targets if values is None else list(values)
    if len(given) != targets:
        raise ValueError(f"one item for each of {targets} neighbours is needed, not {len(given)}")
    return lambda driver: _objects(driver, given)


def _allgather(state: CommState, sendbuf: Any, recvbuf: Any, vector: bool) -> Work:
    sources, targets = len(_sources(state)), len(_destinations(state))
    send, receive = calls.neighbor_allgather(sendbuf, recvbuf, sources, vector=vector)
    return lambda driver: _blocks(driver, [packed(send)] * targets, receive)


def _alltoall(state: CommState, sendbuf: Any, recvbuf: Any, vector: bool) -> Work:
    sources, targets = len(_sources(state)), len(_destinations(state))
    send, receive = calls.neighbor_alltoall(sendbuf, recvbuf, sources, targets, vector=vector)
    return lambda driver: _blocks(driver, [packed(one) for one in send], receive)


def _alltoallw(state: CommState, sendbuf: Any, recvbuf: Any) -> Work:
    sources, targets = len(_sources(state)), len(_destinations(state))
    send, receive = calls.neighbor_alltoallw(sendbuf, recvbuf, sources, targets)
    return lambda driver: _blocks(driver, [packed(one) for one in send], receive)


# ---- work ----


def _objects(driver: IntraBlocks, values: Sequence[Any]) -> list[Any]:
    received = _exchange(driver, [dressed(one) for one in values])
    return [
        None if source == PROC_NULL else undressed(value)
        for source, value in zip(_sources(driver.state), received, strict=True)
    ]


def _blocks(driver: IntraBlocks, values: Sequence[Any], receive: Blocks) -> None:
    received = _exchange(driver, values)
    for source, value, block in zip(_sources(driver.state), received, receive, strict=True):
        if source != PROC_NULL:
            driver.put(block, value, source)


def _exchange(driver: IntraBlocks, values: Sequence[Any]) -> list[Any]:
    """Give one value to each destination: what each source has given; None for PROC_NULL."""
    rank, topology = driver.rank, _topology(driver.state)
    sources, destinations = topology.sources(rank), topology.destinations(rank)
    order = [nth for nth in topology.sending_order(rank) if destinations[nth] != PROC_NULL]
    received = iter(
        driver.group.exchange(
            [(destinations[nth], values[nth]) for nth in order],
            [source for source in sources if source != PROC_NULL],
        )
    )
    return [None if source == PROC_NULL else next(received) for source in sources]


def _topology(state: CommState) -> Topology:
    topology: Topology = state.topology
    return topology


def _sources(state: CommState) -> list[int]:
    return _topology(state).sources(state.rank)


def _destinations(state: CommState) -> list[int]:
    return _topology(state).destinations(state.rank)
