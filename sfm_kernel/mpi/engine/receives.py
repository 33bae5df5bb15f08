"""Receives, and the order in which they were posted.

MPI's rule: a message goes to the first posted receive that it fits, and a receive gets the first
message that fits it (MPI 4.1, section 3.5). Messages wait in the native inbox, receives here. All
posted receives are offered to the inbox at one instant, in their order, so that what arrives
meanwhile never goes to a later receive that an earlier one wants, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_TRUNCATE
from sfm_kernel.mpi.base.errors import Exception as MPIError
from sfm_kernel.mpi.base.pickles import pickle
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Context
    from sfm_kernel.message import Message
    from sfm_kernel.mpi.buffers import Elements
    from sfm_kernel.mpi.engine.communicator import CommState

Template = dict[str, Any]


def template(state: CommState, source: int, tag: int) -> Template:
    """What a receive from this rank with this tag matches."""
    wanted: Template = {}
    if source != ANY_SOURCE:
        wanted["src"] = state.peers[source]
    if tag != ANY_TAG:
        wanted["tag"] = tag
    return wanted


class Receive(Operation):
    """A receive: posted, then taking one message, perhaps in chunks.

    Args:
        into: where the items go; None for an object, which will be ``result``.
    """

    __slots__ = ("_at", "_size", "_streamed", "_transfer", "into", "state", "template")

    into: Elements | _Bytes | None

    def __init__(self, state: CommState, wanted: Template, into: Elements | None) -> None:
        super().__init__(state.process.engine, "Recv", state)
        self.state, self.template, self.into = state, wanted, into
        self._transfer = ""
        self._at = self._size = 0
        self._streamed: NDArray[np.uint8] | None = None

    def post(self) -> None:
        """Take a message as soon as there is one."""
        self.state.process.engine.post(self)

    def peers(self) -> Iterable[Name]:
        src = self.template.get("src")
        return () if src is None else (src,)

    def wanted(self) -> tuple[Template, int]:
        return self.template, self.state.context.space

    def lost(self, failure: BaseException) -> None:
        self.state.process.engine.withdraw(self)
        self.state.process.engine.incoming.pop(self._transfer, None)
        self.finish(failure)

    def cancel(self) -> None:
        if self.state.process.engine.withdraw(self):
            self.cancelled = True
            self.finish()

    def take(self, m: Message, alone: bool = False) -> None:
        """This message is what was received. More of it may follow.

        Args:
            alone: nothing else is under way, and the caller will call ``stream``.
        """
        self.template = {"src": m.src}
        source = self.state.ranks[m.src]
        if "transfer" in m:
            self._transfer = m.transfer
        if "obj" in m:
            self._take_object(m, source)
            return
        self._size = data_bytes(m)
        self.settle(source, m.tag, self._size)
        if self.into is None:
            self.into = _Bytes(self._size)
        self._put(m)
        if self._size > self.into.nbytes:
            self._say(stop=True)
            self.finish(too_long(self._size, self.into.nbytes, source, m.tag))
            return
        del m  # its memory goes back before the sender hears that it may send the next
        if self._at < self._size and alone and self.state.direct.is_near(source):
            self._streamed = self.into.view(self._size)
            if self._streamed is not None:
                self._say(stream=True)
                return
        self._say()
        if self._at < self._size:
            self.state.process.engine.incoming[self._transfer] = self
        else:
            self._complete()

    def _take_object(self, m: Message, source: int) -> None:
        value = m.obj
        self.settle(source, m.tag, PickledLength(value))
        self._say(stop=True)
        if self.into is None:
            self.result = value
            self.finish()
            return
        data = np.frombuffer(pickle.dumps(value), np.uint8)
        self.into.put(0, data[: self.into.nbytes])
        long = len(data) > self.into.nbytes
        self.finish(too_long(len(data), self.into.nbytes, source, m.tag) if long else None)

    def stream(self) -> None:
        """Wait for the rest of a message of which ``take`` has asked for all at once."""
        if self._streamed is not None:
            direct = self.state.direct
            try:
                direct.receive_stream(self.source, self._transfer, self._streamed, self._at)
            finally:
                self._streamed = None  # where that fails, the sender knows
            self._complete()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Who was in a blocking receive, and is stopped, keeps no sender and takes no message."""
        if isinstance(error, Exception) or error is None:
            return
        if self._streamed is not None:
            self.state.direct.abandon(self.source, self._transfer, self._streamed, self._at)
            self._streamed = None
        elif not self._transfer:
            self.cancel()

    def go_on(self, m: Message) -> None:
        """The next chunk has come."""
        self._put(m)
        del m  # as above
        self._say()
        if self._at == self._size:
            self.state.process.engine.incoming.pop(self._transfer, None)
            self._complete()

    def _complete(self) -> None:
        if isinstance(self.into, _Bytes):
            self.result = _loads(self.into.memory)
        self.finish()

    def _put(self, m: Message) -> None:
        """Take in what this message has; what there is no room for is dropped."""
        into = self.into
        assert into is not None
        if "parts" not in m:
            data = m.data
            into.put(self._at, data[: max(0, into.nbytes - self._at)])
            self._at += len(data)
            return
        # The other parts are on their way: their sender waits for nothing.
        place = into.view(m.size) if m.size <= into.nbytes else None
        data = np.empty(m.size, np.uint8) if place is None else place
        self.state.direct.receive(m, data)
        if place is None:
            into.put(0, data[: into.nbytes])
        self._at = m.size

    def _say(self, **more: Any) -> None:
        if self._transfer:
            dest = next(iter(self.peers()))
            self.state.process.engine.tell(dest, ack=self._transfer, **more)


def data_bytes(m: Message) -> int:
    """How many bytes the message has, of which this is the first that travels, or all."""
    if "transfer" in m:
        total: int = m.total
        return total
    return m.size if "parts" in m else len(m.data)


class PickledLength:
    """The number of bytes of a pickled object: found out when a program asks."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self) -> int:
        return len(pickle.dumps(self._value))


def too_long(nbytes: int, room: int, source: int, tag: int) -> MPIError:
    """The error of a receive whose buffer has no room for the message."""
    return MPIError(
        ERR_TRUNCATE,
        f"rank {source} sent {nbytes:,} bytes with tag {tag}, and the receive buffer has room for "
        f"{room:,}: give it a larger one (Probe and Get_count tell how large)",
    )


def _loads(data: NDArray[np.uint8]) -> Any:
    return pickle.loads(data) if len(data) else None


class _Bytes:
    """Where the chunks of a pickled object go."""

    def __init__(self, nbytes: int) -> None:
        self.memory, self.nbytes = np.empty(nbytes, np.uint8), nbytes

    def view(self, nbytes: int) -> NDArray[np.uint8]:
        return self.memory

    def put(self, start: int, data: NDArray[np.uint8]) -> None:
        self.memory[start : start + len(data)] = data


class Posted:
    """The receives of one communicator that wait for a message, in their order."""

    def __init__(self, context: Context) -> None:
        self._context = context
        # Neighbours in the order that want the same are looked up once.
        self._runs: list[tuple[Template, deque[Receive]]] = []

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __iter__(self) -> Any:
        for _, run in self._runs:
            yield from run

    def append(self, receive: Receive) -> None:
        """Post behind the others."""
        if self._runs and self._runs[-1][0] == receive.template:
            self._runs[-1][1].append(receive)
        else:
            self._runs.append((receive.template, deque((receive,))))

    def remove(self, receive: Receive) -> bool:
        """Take back; false if it has got its message."""
        for nth, (_, run) in enumerate(self._runs):
            if receive in run:
                run.remove(receive)
                if not run:
                    del self._runs[nth]
                return True
        return False

    def match(self) -> None:
        """Give the receives what has come for them."""
        while self._runs:
            found = self._context._any([wanted for wanted, _ in self._runs], True)
            if found is None:
                return
            nth, m = found
            receive = self._runs[nth][1].popleft()
            if not self._runs[nth][1]:
                del self._runs[nth]
            try:
                receive.take(m)
            except Exception as failure:  # noqa: BLE001 - whoever waits for it raises it
                receive.finish(failure)

    def look(self, wanted: Template, take: bool) -> Message | None:
        """What a receive that was posted now would get; for probes. ``match`` comes first."""
        while True:
            self.match()
            first = [other for other, _ in self._runs]
            found = self._context._any([*first, wanted], False)
            if found is None or (found[0] == len(first) and not take):
                return None if found is None else found[1]
            if found[0] == len(first):
                # Nothing that came since can be before it: an inbox only grows at its end.
                taken = self._context._any([wanted], True)
                if taken is not None:  # no other thread's receive was faster
                    return taken[1]
