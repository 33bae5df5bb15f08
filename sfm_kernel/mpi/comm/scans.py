"""Scans: each member gets what the ranks up to its own have, combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.base.info import INFO_NULL, Info
from sfm_kernel.mpi.comm import plans
from sfm_kernel.mpi.comm.driver import PyOp, blocking, prepared, started
from sfm_kernel.mpi.comm.plans import Spec
from sfm_kernel.mpi.ops.op import Op
from sfm_kernel.mpi.ops.predefined import SUM

if TYPE_CHECKING:
    from sfm_kernel.mpi.requests.prequest import Prequest
    from sfm_kernel.mpi.requests.request import Request


class Scans:
    """Prefix reductions, in all forms; for ``Intracomm``."""

    __slots__ = ()

    def scan(self, sendobj: Any, op: Op | PyOp = SUM) -> Any:
        """The objects of ranks 0 to the own one, combined."""
        return blocking(self, plans.scan_objects, sendobj, op)

    def exscan(self, sendobj: Any, op: Op | PyOp = SUM) -> Any:
        """The same without the own rank; None on rank 0."""
        return blocking(self, plans.exscan_objects, sendobj, op)

    def Scan(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> None:
        """The elements of ranks 0 to the own one, combined one by one."""
        blocking(self, plans.scan, sendbuf, recvbuf, op)

    def Exscan(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> None:
        """The same without the own rank; on rank 0 the receive buffer is left as it is."""
        blocking(self, plans.exscan, sendbuf, recvbuf, op)

    def Iscan(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> Request:
        """Start a ``Scan``."""
        return started(self, plans.scan, sendbuf, recvbuf, op)

    def Iexscan(self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM) -> Request:
        """Start a ``Exscan``."""
        return started(self, plans.exscan, sendbuf, recvbuf, op)

    def Scan_init(
        self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Scan``."""
        return prepared(self, plans.scan, sendbuf, recvbuf, op)

    def Exscan_init(
        self, sendbuf: Spec, recvbuf: Spec, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request each round of which is a ``Exscan``."""
        return prepared(self, plans.exscan, sendbuf, recvbuf, op)
