"""Sends that are not over at once: synchronous ones, and large ones, which go in chunks.

A message of at most ``EAGER_BYTES`` is sent *eagerly*: with its data, and the send is over when
those are copied. Where memory is shared it goes in parts, so that the receiver copies one while
the sender copies the next (native/python/src/parts.rs). A larger one opens with so much, or with a
chunk where memory is not shared, and its whole size. Its receiver, once a receive has taken it,
answers each chunk with an acknowledgement; from the first one on, ``WINDOW`` chunks may be under
way. If the receiver waits for this message alone, in a blocking receive, its first
acknowledgement says ``stream``, and all the rest goes natively, in parts, with a window as large.
So the receiver needs memory for those, beside its buffer, and none for what nobody receives yet.
A synchronous send is over when its (only or last) chunk was acknowledged: that is when a receive
has matched it.

What travels (beside ``src`` and ``dest``):

==============  ===================================================================================
in the          ``tag``; ``obj`` (a pickled object) or ``data`` (bytes); and, where an answer is
communicator's  wanted, ``transfer``, a name that no other transfer of the sender has, and ``total``
context         bytes. Of what is in parts: ``parts``, its number, ``size``, and its first ``data``
between         ``to`` (the transfer) and ``data``: the next chunk · ``ack`` (the transfer): a chunk
engines         was received; with ``stop`` nothing more is wanted, with ``stream`` all in parts
==============  ===================================================================================

Source: SFM paper, section 3, Example 3, as ``chunks`` has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.chunks import CHUNK_BYTES, WINDOW
from sfm_kernel.mpi.engine.operation import Operation
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.message import Message
    from sfm_kernel.mpi.buffers import Elements
    from sfm_kernel.mpi.engine.communicator import CommState


EAGER_BYTES = WINDOW * CHUNK_BYTES
"""The most that is sent eagerly: what a large send may have under way, too. The native calls have
the same (native/python/src/memory.rs)."""


class Send(Operation):
    """A send of the elements of a buffer.

    Args:
        dest: the receiver's name.
        sync: it is over when a receive has matched it, not earlier.
    """

    sends = True

    __slots__ = ("_dest", "_elements", "_flying", "_sent", "_transfer", "state", "sync")

    def __init__(
        self, state: CommState, dest: Name, tag: int, elements: Elements | None, sync: bool
    ) -> None:
        super().__init__(state.process.engine, "Send", state)
        self.state, self.sync, self.tag = state, sync, tag
        self._dest, self._elements = dest, elements
        self._transfer = ""
        self._sent = self._flying = 0

    def start(self) -> None:
        """Send the first chunk; never waits for the receiver."""
        elements, state = self._elements, self.state
        assert elements is not None
        size, rank = elements.nbytes, state.ranks[self._dest]
        if size <= EAGER_BYTES and not self.sync:
            data = elements.get(0, size)
            if not state.direct.send(rank, self.tag, data, state.loose.buffering):
                state.loose.send(dest=self._dest, tag=self.tag, data=data)
            self._over()
            return
        near = size > EAGER_BYTES and state.direct.is_near(rank)
        self._sent = EAGER_BYTES if near else min(size, CHUNK_BYTES)
        data = elements.get(0, self._sent)
        with self._opening():
            if near:
                state.direct.open(rank, self.tag, data, self._transfer, size)
            else:
                self._send_first(total=size, data=data)

    def start_object(self, obj: Any) -> None:
        """Send an object, which goes as a whole, synchronously."""
        with self._opening():
            self._send_first(total=0, obj=obj)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Have a name, and be found by it, while and after the first message goes out."""
        engine = self.state.process.engine
        self._transfer = engine.new_transfer()
        self._flying = 1
        engine.outgoing[self._transfer] = self
        try:
            yield
        except BaseException:
            engine.outgoing.pop(self._transfer, None)
            raise

    def _send_first(self, **what: Any) -> None:
        loose = self.state.loose
        loose.send(dest=self._dest, tag=self.tag, transfer=self._transfer, **what)

    def acknowledged(self, m: Message) -> None:
        """A chunk was received: the next ones may go."""
        if "stream" in m:
            self.state.process.engine.stream(self)
            return
        self._flying -= 1
        elements = self._elements
        size = 0 if elements is None else elements.nbytes
        if "stop" in m or (self._flying == 0 and self._sent == size):
            self._over()
            return
        engine = self.state.process.engine
        while self._flying < WINDOW and self._sent < size:
            assert elements is not None
            end = min(size, self._sent + CHUNK_BYTES)
            engine.tell(self._dest, to=self._transfer, data=elements.get(self._sent, end))
            self._sent, self._flying = end, self._flying + 1

    def stream(self) -> None:
        """The receiver waits for this alone: send all the rest, natively. Stop ends it."""
        elements, state = self._elements, self.state
        assert elements is not None
        rank, acked = state.ranks[self._dest], self._sent
        try:
            while self._sent < elements.nbytes:
                end = min(elements.nbytes, self._sent + EAGER_BYTES)
                data = elements.get(self._sent, end)
                got = state.direct.stream(rank, self._transfer, data, self._sent, acked)
                if got is None:
                    break
                self._sent, acked = end, got
        except Exception as failure:  # noqa: BLE001 - whoever waits for it raises it
            self.give_up(failure)
        else:
            self._over()

    def give_up(self, failure: Exception) -> None:
        """This stream does not come to its end: tell the receiver."""
        with suppress(SFMError):
            self.state.direct.give_up(self.state.ranks[self._dest], self._transfer)
        self._over(failure)

    def _over(self, failure: BaseException | None = None) -> None:
        self.state.process.engine.outgoing.pop(self._transfer, None)
        self._elements = None  # the program's buffer may go
        self.finish(failure)

    def lost(self, failure: BaseException) -> None:
        """The receiver has died."""
        self._over(failure)

    def peers(self) -> Iterable[Name]:
        return (self._dest,)
