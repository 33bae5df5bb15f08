"""Collectives that return at once: ``Ibarrier``, ``Ibcast`` …"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfm_kernel.mpi.comm import plans
from sfm_kernel.mpi.comm.driver import started
from sfm_kernel.mpi.comm.plans import Counts, Spec
from sfm_kernel.mpi.ops.op import Op
from sfm_kernel.mpi.ops.predefined import SUM

if TYPE_CHECKING:
    from sfm_kernel.mpi.requests.request import Request


class NonBlockingCollectives:
    """Collectives that are started, and waited for later; for ``Comm``.

    They are done in the order in which they were started, which is the same on all members. The
    buffers belong to the call until its request was waited for, which also raises what went wrong.
    """

    __slots__ = ()

    def Ibarrier(self) -> Request:
        """Start a ``Barrier``."""
        return started(self, plans.barrier)

    def Ibcast(self, buf: Spec, root: int = 0) -> Request:
        """Start a ``Bcast``."""
        return started(self, plans.bcast, buf, root)

    def Igather(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> Request:
        """Start a ``Gather``."""
        return started(self, plans.gather, sendbuf, recvbuf, root, False)

    def Igatherv(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> Request:
        """Start a ``Gatherv``."""
        return started(self, plans.gather, sendbuf, recvbuf, root, True)

    def Iscatter(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> Request:
        """Start a ``Scatter``."""
        return started(self, plans.scatter, sendbuf, recvbuf, root, False)

    def Iscatterv(self, sendbuf: Spec, recvbuf: Spec, root: int = 0) -> Request:
        """Start a ``Scatterv``."""
        return started(self, plans.scatter, sendbuf, recvbuf, root, True)

    def Iallgather(self, sendbuf: Spec, recvbuf: Spec) -> Request:
        """Start a ``Allgather``."""
        return started(self, plans.allgather, sendbuf, recvbuf, False)

    def Iallgatherv(self, sendbuf: Spec, recvbuf: Spec) -> Request:
        """Start a ``Allgatherv``."""
        return started(self, plans.allgather, sendbuf, recvbuf, True)

    def Ialltoall(self, sendbuf: Spec, recvbuf: Spec) -> Request:
        """Start a ``Alltoall``."""
        return started(self, plans.alltoall, sendbuf, recvbuf, False)

    def Ialltoallv(self, sendbuf: Spec, recvbuf: Spec) -> Request:
        """Start a ``Alltoallv``."""
        return started(self, plans.alltoall, sendbuf, recvbuf, True)

    def Ialltoallw(self, sendbuf: Spec, recvbuf: Spec) -> Request:
        """Start a ``Alltoallw``."""
        return started(self, plans.alltoallw, sendbuf, recvbuf)

    def Ireduce(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, root: int = 0) -> Request:
        """Start a ``Reduce``."""
        return started(self, plans.reduce, sendbuf, recvbuf, op, root)

    def Iallreduce(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> Request:
        """Start a ``Allreduce``."""
        return started(self, plans.allreduce, sendbuf, recvbuf, op)

    def Ireduce_scatter_block(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> Request:
        """Start a ``Reduce_scatter_block``."""
        return started(self, plans.reduce_scatter_block, sendbuf, recvbuf, op)

    def Ireduce_scatter(
        self, sendbuf: Spec, recvbuf: Spec, recvcounts: Counts = None, op: Op = SUM
    ) -> Request:
        """Start a ``Reduce_scatter``."""
        return started(self, plans.reduce_scatter, sendbuf, recvbuf, recvcounts, op)
