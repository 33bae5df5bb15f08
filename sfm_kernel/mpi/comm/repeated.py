"""Sends and receives that are started again and again, whole or in partitions."""

from __future__ import annotations

from typing import Any

from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_ARG, PROC_NULL
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.buffers import Elements, for_recv, for_send
from sfm_kernel.mpi.comm.pointtopoint import PointToPoint
from sfm_kernel.mpi.engine.operation import Operation, finished
from sfm_kernel.mpi.engine.partitioned import Channel, PartitionedReceive, PartitionedSend
from sfm_kernel.mpi.requests.prequest import Prequest


class RepeatedPointToPoint(PointToPoint):
    """Persistent requests: the arguments are looked at once, and each ``Start`` sends or receives.

    A buffer is the program's again when the request was waited for.
    """

    __slots__ = ()

    def Send_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A ``Send`` for later."""
        return self._repeated_send(buf, dest, tag, standard=True)

    def Ssend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """An ``Ssend`` for later."""
        return self._repeated_send(buf, dest, tag, sync=True)

    def Rsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """An ``Rsend`` for later."""
        return self._repeated_send(buf, dest, tag, standard=True)

    def Bsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A ``Bsend`` for later."""
        self._check_send(dest, tag)
        return Prequest._of_start(lambda: self._send_buffered(buf, dest, tag))

    def Recv_init(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:
        """A ``Recv`` for later."""
        if source == PROC_NULL:
            return Prequest._of_start(_nothing)
        into = for_recv(buf)
        self._wanted(self._live, source, tag)
        return Prequest._of_start(lambda: self._post(source, tag, into))

    def _repeated_send(self, buf: Any, dest: int, tag: int, **mode: bool) -> Prequest:
        elements = self._elements(buf, dest)
        self._check_send(dest, tag)
        return Prequest._of_start(lambda: self._send(elements, dest, tag, **mode))

    def _check_send(self, dest: int, tag: int) -> None:
        if dest != PROC_NULL:
            self._peer(dest, tag)

    def Psend_init(
        self, buf: Any, partitions: int, dest: int, tag: int = 0, info: Any = None
    ) -> Prequest:
        """A send whose partitions ``Prequest.Pready`` sends, one by one."""
        _check_partitions(partitions)
        if dest == PROC_NULL:
            return Prequest._of_start(_nothing)
        state = self._peer(dest, tag)
        elements = _all_of(for_send(buf, partitions), partitions)
        channel = Channel(state, dest, tag, "to")
        return Prequest._of_start(lambda: PartitionedSend(channel, elements, partitions))

    def Precv_init(
        self,
        buf: Any,
        partitions: int,
        source: int = ANY_SOURCE,
        tag: int = 0,
        info: Any = None,
    ) -> Prequest:
        """A receive that says with ``Prequest.Parrived`` which partitions have come."""
        _check_partitions(partitions)
        if source == PROC_NULL:
            return Prequest._of_start(_nothing)
        state = self._peer(source, tag)
        elements = _all_of(for_recv(buf, partitions), partitions)
        channel = Channel(state, source, tag, "from")
        return Prequest._of_start(lambda: PartitionedReceive(channel, elements, partitions))


def _nothing() -> Operation:
    return finished(PROC_NULL)


def _check_partitions(partitions: int) -> None:
    if partitions < 1:
        fail(ERR_ARG, f"there is at least 1 partition, not {partitions}")


def _all_of(part: Elements, partitions: int) -> Elements:
    """The elements of all partitions, from those of one."""
    return Elements(part.owner, part.datatype, part.count * partitions, part.origin, part.memory)
