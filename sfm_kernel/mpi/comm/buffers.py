"""Collectives of buffers: ``Bcast``, ``Gather``, ``Allreduce`` …"""

from __future__ import annotations

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.comm import plans, quick
from sfm_kernel.mpi.comm.driver import blocking, members_at_once, tell
from sfm_kernel.mpi.comm.plans import Counts, Spec
from sfm_kernel.mpi.ops.op import Op
from sfm_kernel.mpi.ops.predefined import SUM


class BufferCollectives:
    """What all members of a communicator call together, with buffers; for ``Comm``.

    Each call returns on a member when its buffers hold what the call is for, and may be changed.
    With IN_PLACE as ``sendbuf`` (``recvbuf`` of a Scatter's root), what is sent lies where the
    result belongs.
    """

    __slots__ = ()

    Barrier = quick.Barrier

    def Bcast(self, buf: Spec, root: int = 0) -> None:
        """The root's elements, in the buffers of all."""
        blocking(self, plans.bcast, buf, root)

    def Gather(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> None:
        """The elements of each member, by rank, at the root; all give the same number."""
        blocking(self, plans.gather, sendbuf, recvbuf, root, False)

    def Gatherv(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> None:
        """As ``Gather``, with counts and displacements."""
        blocking(self, plans.gather, sendbuf, recvbuf, root, True)

    def Scatter(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> None:
        """To each member its block of the root's elements; all get the same number."""
        blocking(self, plans.scatter, sendbuf, recvbuf, root, False)

    def Scatterv(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> None:
        """As ``Scatter``, with counts and displacements."""
        blocking(self, plans.scatter, sendbuf, recvbuf, root, True)

    def Allgather(self, sendbuf: Spec, recvbuf: Spec) -> None:
        """The elements of each member, by rank, at all of them."""
        blocking(self, plans.allgather, sendbuf, recvbuf, False)

    def Allgatherv(self, sendbuf: Spec, recvbuf: Spec) -> None:
        """As ``Allgather``, with counts and displacements."""
        blocking(self, plans.allgather, sendbuf, recvbuf, True)

    def Alltoall(self, sendbuf: Spec, recvbuf: Spec) -> None:
        """From each member the block that it has for this one."""
        blocking(self, plans.alltoall, sendbuf, recvbuf, False)

    def Alltoallv(self, sendbuf: Spec, recvbuf: Spec) -> None:
        """As ``Alltoall``, with counts and displacements."""
        blocking(self, plans.alltoall, sendbuf, recvbuf, True)

    def Alltoallw(self, sendbuf: Spec, recvbuf: Spec) -> None:
        """As ``Alltoall``, with a datatype for each block; displacements in bytes."""
        blocking(self, plans.alltoallw, sendbuf, recvbuf)

    def Reduce(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, root: int = 0) -> None:
        """All members' elements combined, one by one, at the root."""
        blocking(self, plans.reduce, sendbuf, recvbuf, op, root)

    def Allreduce(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> None:
        """All members' elements combined, one by one, at all of them."""
        try:
            members = members_at_once(self)
            if members is not None:
                arrays = quick.two_arrays(sendbuf, recvbuf, op)
                if arrays is not None:
                    send, receive, function = arrays
                    members.allreduce(send, function, out=receive)
                    return
        except SFMError as error:
            tell(self, error)
        blocking(self, plans.allreduce, sendbuf, recvbuf, op)

    def Reduce_scatter_block(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> None:
        """Of all members' elements combined, to each its block; all get the same number."""
        blocking(self, plans.reduce_scatter_block, sendbuf, recvbuf, op)

    def Reduce_scatter(
        self, sendbuf: Spec, recvbuf: Spec, recvcounts: Counts = None, op: Op = SUM
    ) -> None:
        """As ``Reduce_scatter_block``, with the number of elements of each rank."""
        blocking(self, plans.reduce_scatter, sendbuf, recvbuf, recvcounts, op)
