"""Prequest: an operation that is started again and again, whole or in partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from sfm_kernel.mpi.base.constants import ERR_ARG, ERR_REQUEST
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.mpi.requests.request import Request
from sfm_kernel.mpi.requests.state import Persistent, RequestState

if TYPE_CHECKING:
    from sfm_kernel.mpi.engine.partitioned import PartitionedSend


class Prequest(Request):
    """A persistent request: ``Start`` begins one round, and waiting ends it."""

    __slots__ = ()

    def __new__(cls, request: Request | None = None) -> Self:
        if request is not None:
            state = getattr(request, "_state", None)
            if not isinstance(request, Request) or not isinstance(state, Persistent | None):
                raise TypeError(f"Prequest() takes a persistent request or None, not {request!r}")
        return super().__new__(cls, request)

    @classmethod
    def _of_start(cls, begin: Callable[[], Operation]) -> Self:
        """A request each round of which ``begin()`` starts."""
        return cls._of(Persistent(begin))

    def Start(self) -> None:
        """Begin a round.

        Raises:
            Exception: ERR_REQUEST: the last round was not waited for.
        """
        state = self._live
        assert isinstance(state, Persistent)
        if state.operation is not None:
            fail(ERR_REQUEST, "this request is started already: wait for it before its next Start")
        state.operation = state.begin()

    @classmethod
    def Startall(cls, requests: list[Prequest]) -> None:
        """Begin a round of each."""
        for request in requests:
            request.Start()

    # ---- partitions ----

    def Pready(self, partition: int) -> None:
        """This partition of the send buffer may be sent."""
        self._send().ready(partition)

    def Pready_range(self, partition_low: int, partition_high: int) -> None:
        """So may these, the last one included."""
        send = self._send()
        for partition in range(partition_low, partition_high + 1):
            send.ready(partition)

    def Pready_list(self, partitions: Sequence[int]) -> None:
        """So may these."""
        send = self._send()
        for partition in partitions:
            send.ready(partition)

    def Parrived(self, partition: int) -> bool:
        """Whether this partition of the receive buffer has come."""
        from sfm_kernel.mpi.engine.partitioned import PartitionedReceive, arrived

        state = self._live
        if state.operation is None and isinstance(state, Persistent):
            return True  # not started, or waited for: nothing is missing
        operation = state.operation
        if not isinstance(operation, PartitionedReceive):
            fail(ERR_REQUEST, "Parrived is for requests of Precv_init")
        return arrived(operation, partition)

    def _send(self) -> PartitionedSend:
        from sfm_kernel.mpi.engine.partitioned import PartitionedSend

        operation = self._live.operation
        if not isinstance(operation, PartitionedSend):
            fail(ERR_REQUEST, "Pready is for requests of Psend_init that were started")
        return operation


def wrap(state: RequestState | None) -> type[Request]:
    """The class that fits a request's state."""
    return Prequest if isinstance(state, Persistent) else Request


def check_partition(partition: int, partitions: int) -> None:
    """Raise ERR_ARG if there is no such partition."""
    if not 0 <= partition < partitions:
        fail(ERR_ARG, f"partition {partition} does not exist: there are 0 to {partitions - 1}")
