"""Collectives that move elements of buffers between the members of one group.

Elements travel as packed bytes: the datatypes of the two sides may differ. Where elements follow
each other in memory, that is the memory which is sent, and into which what arrives is copied once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.mpi.base.constants import ERR_OTHER, ERR_TRUNCATE
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.comm.driver import Driver

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers import Blocks, Elements

Bytes = NDArray[np.uint8]

SMALL = 1800
"""Bytes up to which a member's part is gathered in memory that all share: in a cell of the board
there is room for 2016 bytes, with what pickle puts around them."""

TREE = 1 << 13
"""Bytes of a block from which on the root talks with everybody itself: a tree has fewer steps, and
carries the blocks several times."""


class IntraBlocks(Driver):
    """Collectives of elements."""

    def barrier(self) -> None:
        self.group.barrier()

    def bcast(self, data: Elements | None, root: int) -> None:
        assert data is not None
        if self.rank == root:
            self.group.bcast(packed(data), root)
            return
        received = self.group.bcast(None, root)
        if len(received) < data.nbytes:
            raise MPIError(
                ERR_OTHER,
                f"Bcast: rank {root} has sent {len(received):,} bytes, and the buffer of rank "
                f"{self.rank} is for {data.nbytes:,}: give the same number of elements everywhere",
            )
        self.put(data, received, root)

    def gather(self, send: Elements | None, receive: Blocks | None, root: int, even: bool) -> None:
        assert send is not None
        parts = self.group.gather(packed(send), root, algorithm=self._for(even, send.nbytes))
        if parts is not None and receive is not None:
            self.put_all(receive, parts, send)

    def scatter(self, send: Blocks | None, receive: Elements | None, root: int, even: bool) -> None:
        assert receive is not None
        if self.rank != root:
            part = self.group.scatter(None, root, algorithm=self._for(even, receive.nbytes))
            self.put(receive, part, root)
            return
        assert send is not None
        parts = [packed(one) for one in send]
        own = self.group.scatter(parts, root, algorithm=self._for(even, send[root].nbytes))
        if receive is not send[root]:
            self.put(receive, own, root)

    def _for(self, even: bool, nbytes: int) -> str | None:
        """The algorithm for blocks of so many bytes: one that all members choose. Between sites it
        is chosen by the sites."""
        by_tree = even and nbytes < TREE
        return None if by_tree or self.group.sites > 1 else "linear"

    def allgather(self, send: Elements, receive: Blocks) -> None:
        if max(one.nbytes for one in receive) <= SMALL:
            small = self.group.allgather(packed(send).tobytes())
            parts = [np.frombuffer(one, np.uint8) for one in small]
        else:
            algorithm = "ring" if self.group.sites == 1 else None
            parts = self.group.allgather(packed(send), algorithm=algorithm)
        self.put_all(receive, parts, send)

    def alltoall(self, send: Blocks, receive: Blocks) -> None:
        # All is sent when the parts have come, so they may be put where it was.
        parts = self.group.alltoall([packed(one) for one in send])
        self.put_all(receive, parts, send[self.rank])

    def put_all(self, receive: Blocks, parts: list[Any], own: Elements) -> None:
        """Put what each member has sent into its block; the own part is there if sent in place."""
        for rank, (block, part) in enumerate(zip(receive, parts, strict=True)):
            if block is not own:
                self.put(block, part, rank)

    def put(self, into: Elements, data: Bytes, rank: int) -> None:
        """Put what a member has sent where it belongs.

        Raises:
            Exception: ERR_TRUNCATE: it is more than there is room for; what has room is there.
        """
        if len(data) > into.nbytes:
            into.put(0, data[: into.nbytes])
            raise MPIError(
                ERR_TRUNCATE,
                f"rank {rank} has sent {len(data):,} bytes, and rank {self.rank} receives "
                f"{into.nbytes:,} from it: the counts of both sides must agree",
            )
        into.put(0, data)


def packed(elements: Elements) -> Bytes:
    """All of them as bytes; a view if they follow each other in memory."""
    return elements.get(0, elements.nbytes)
