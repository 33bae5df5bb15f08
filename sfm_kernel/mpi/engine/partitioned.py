"""Sends and receives in partitions, which are ready, and arrive, one by one.

The nth ``Psend_init`` for a receiver and tag belongs to the nth ``Precv_init`` for this sender and
tag (MPI 4.1, section 4.2). Both count, so that they meet without a message. Each partition travels
with the place that it has in the whole, and the two sides may cut it differently.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.mpi.engine.receives import Receive
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.buffers import Elements


class Channel:
    """What a pair of requests has for itself: messages that nothing else receives."""

    def __init__(self, state: CommState, peer: int, tag: int, way: str) -> None:
        counts = state.channels
        number = counts[way, peer, tag] = counts.get((way, peer, tag), -1) + 1
        self.state, self.peer = state.partitions(), state.peers[peer]
        self.rank, self.tag = peer, tag
        self.name = f"{tag}.{number}"


class PartitionedSend(Operation):
    """One round of a send: done when all partitions were ready and are sent."""

    __slots__ = ("_channel", "_elements", "_left", "_partitions")

    def __init__(self, channel: Channel, elements: Elements, partitions: int) -> None:
        super().__init__(channel.state.process.engine, "Psend", channel.state)
        self._channel, self._elements, self._partitions = channel, elements, partitions
        self._left = set(range(partitions))
        self.tag = channel.tag
        if not partitions:
            self.finish()

    def ready(self, partition: int) -> None:
        """Send this partition."""
        from sfm_kernel.mpi.base.constants import ERR_ARG
        from sfm_kernel.mpi.base.errors import fail
        from sfm_kernel.mpi.requests.prequest import check_partition

        check_partition(partition, self._partitions)
        if partition not in self._left:
            fail(ERR_ARG, f"partition {partition} was ready before in this round")
        start, end = bounds(self._elements.nbytes, self._partitions, partition)
        data = self._elements.get(start, end)
        what = {"part": partition, "of": self._partitions, "start": start, "data": data}
        channel = self._channel
        channel.state.loose.send(dest=channel.peer, tag=channel.name, obj=what)
        self._left.discard(partition)
        if not self._left:
            self.finish()

    def peers(self) -> Iterable[Name]:
        return (self._channel.peer,)


class PartitionedReceive(Operation):
    """One round of a receive: done when all of the sender's partitions have come."""

    __slots__ = ("_channel", "_come", "_elements", "_of", "partitions")

    def __init__(self, channel: Channel, elements: Elements, partitions: int) -> None:
        super().__init__(channel.state.process.engine, "Precv", channel.state)
        self._channel, self._elements, self.partitions = channel, elements, partitions
        self._come: set[int] = set()
        self._of = 0  # the sender's partitions; 0 as long as nobody knows
        self.settle(channel.rank, channel.tag, elements.nbytes)
        self._expect()

    def _expect(self) -> None:
        _Part(self, self._channel).post()

    def part(self, what: dict[str, Any]) -> None:
        """Some partition of the sender has come."""
        self._of = what["of"]
        self._come.add(what["part"])
        self._elements.put(what["start"], what["data"])
        if len(self._come) < self._of:
            self._expect()
        else:
            self.finish()

    def has(self, partition: int) -> bool:
        """Whether all of this partition has come: all of the sender's that share part of it."""
        first = partition * self._of // self.partitions
        last = -(-(partition + 1) * self._of // self.partitions)
        return self._of > 0 and self._come.issuperset(range(first, last))

    def peers(self) -> Iterable[Name]:
        return (self._channel.peer,)


class _Part(Receive):
    """Takes one partition."""

    __slots__ = ("_whole",)

    def __init__(self, whole: PartitionedReceive, channel: Channel) -> None:
        super().__init__(channel.state, {"src": channel.peer, "tag": channel.name}, None)
        self._whole = whole

    def finish(self, failure: BaseException | None = None) -> None:
        super().finish(failure)
        if failure is None:
            self._whole.part(self.result)
        else:
            self._whole.finish(failure)


def bounds(nbytes: int, partitions: int, partition: int) -> tuple[int, int]:
    """The bytes of a partition: all have the same number of elements."""
    each = nbytes // partitions
    return partition * each, (partition + 1) * each


def arrived(receive: PartitionedReceive, partition: int) -> bool:
    """Whether a partition has come, looked up now."""
    from sfm_kernel.mpi.requests.prequest import check_partition

    check_partition(partition, receive.partitions)
    if receive.engine is not None:
        receive.engine.poll([receive], "Parrived")
    return receive.has(partition)
