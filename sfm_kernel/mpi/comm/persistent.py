"""Collectives that are made again and again: ``Bcast_init`` …"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.comm import plans
from sfm_kernel.mpi.comm.driver import prepared
from sfm_kernel.mpi.comm.plans import Counts, Spec
from sfm_kernel.mpi.ops.op import Op
from sfm_kernel.mpi.ops.predefined import SUM

if TYPE_CHECKING:
    from sfm_kernel.mpi.requests.prequest import Prequest


class PersistentCollectives:
    """Collectives that are prepared once; for ``Comm``.

    Each ``Start`` of the request makes the call with what is in the buffers then; otherwise as the
    calls that return at once. ``info`` is not used.
    """

    __slots__ = ()

    def Barrier_init(self, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Barrier``."""
        return prepared(self, plans.barrier)

    def Bcast_init(self, buf: Spec, root: int = 0, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Bcast``."""
        return prepared(self, plans.bcast, buf, root)

    def Gather_init(
        self, sendbuf: Spec, recvbuf: Spec, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Gather``."""
        return prepared(self, plans.gather, sendbuf, recvbuf, root, False)

    def Gatherv_init(
        self, sendbuf: Spec, recvbuf: Spec, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Gatherv``."""
        return prepared(self, plans.gather, sendbuf, recvbuf, root, True)

    def Scatter_init(
        self, sendbuf: Spec, recvbuf: Spec, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Scatter``."""
        return prepared(self, plans.scatter, sendbuf, recvbuf, root, False)

    def Scatterv_init(
        self, sendbuf: Spec, recvbuf: Spec, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Scatterv``."""
        return prepared(self, plans.scatter, sendbuf, recvbuf, root, True)

    def Allgather_init(self, sendbuf: Spec, recvbuf: Spec, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Allgather``."""
        return prepared(self, plans.allgather, sendbuf, recvbuf, False)

    def Allgatherv_init(self, sendbuf: Spec, recvbuf: Spec, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Allgatherv``."""
        return prepared(self, plans.allgather, sendbuf, recvbuf, True)

    def Alltoall_init(self, sendbuf: Spec, recvbuf: Spec, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Alltoall``."""
        return prepared(self, plans.alltoall, sendbuf, recvbuf, False)

    def Alltoallv_init(self, sendbuf: Spec, recvbuf: Spec, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Alltoallv``."""
        return prepared(self, plans.alltoall, sendbuf, recvbuf, True)

    def Alltoallw_init(self, sendbuf: Spec, recvbuf: Spec, info: Info = INFO_NULL) -> Prequest:
        """A request each round of which is a ``Alltoallw``."""
        return prepared(self, plans.alltoallw, sendbuf, recvbuf)

    def Reduce_init(
        self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, root: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Reduce``."""
        return prepared(self, plans.reduce, sendbuf, recvbuf, op, root)

    def Allreduce_init(
        self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Allreduce``."""
        return prepared(self, plans.allreduce, sendbuf, recvbuf, op)

    def Reduce_scatter_block_init(
        self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Reduce_scatter_block``."""
        return prepared(self, plans.reduce_scatter_block, sendbuf, recvbuf, op)

    def Reduce_scatter_init(
        self,
        sendbuf: Spec,
        recvbuf: Spec,
        recvcounts: Counts = None,
        op: Op = SUM,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """A request each round of which is a ``Reduce_scatter``."""
        return prepared(self, plans.reduce_scatter, sendbuf, recvbuf, recvcounts, op)
