"""Attached buffers: how much a program lets its buffered sends keep.

``Bsend`` returns at once, and keeps a copy of the message until a receive has taken it. The program
says how large such copies may be together: it attaches a buffer to a communicator, or one for all
communicators that have none (``MPI.Attach_buffer``, or to a session). Only the size of that buffer
counts: the copies are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sfm_kernel.mpi.base.constants import BSEND_OVERHEAD, ERR_BUFFER
from sfm_kernel.mpi.base.errors import fail, translated
from sfm_kernel.mpi.engine.operation import Operation, finished
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.requests.request import Request


class Attached:
    """A buffer that is attached.

    Args:
        given: what the program gave.
        nbytes: its size; None: there is always room.
    """

    def __init__(self, given: Any, nbytes: int | None) -> None:
        self.given, self.nbytes = given, nbytes
        self._kept: list[tuple[Operation, int]] = []

    def under_way(self) -> list[Operation]:
        """The sends whose messages are kept still."""
        self._kept = [(one, nbytes) for one, nbytes in self._kept if not one.done]
        return [one for one, _ in self._kept]

    def free(self) -> float:
        """How many bytes there is room for now."""
        if self.nbytes is None:
            return float("inf")
        self.under_way()
        return self.nbytes - sum(nbytes for _, nbytes in self._kept)

    def keep(self, operation: Operation, nbytes: int) -> None:
        """Take room for a message until its send is over."""
        if not operation.done:
            self._kept.append((operation, nbytes))


_process = SimpleNamespace(attached=None)
sessions: WeakSet[Any] = WeakSet()
"""The states of sessions. One buffer of these and of the process serves all communicators that have
none of their own."""


def room_for(state: Any, nbytes: int) -> Attached:
    """The buffer in which a message of a communicator fits.

    Raises:
        Exception: ERR_BUFFER: no buffer is attached, or it is too full.
    """
    holders = (state, _process, *sessions)
    attached = next((one for one in map(_attached_to, holders) if one is not None), None)
    if attached is None:
        fail(ERR_BUFFER, "no buffer is attached: call MPI.Attach_buffer before a Bsend", state)
    needed = nbytes + BSEND_OVERHEAD
    if needed > attached.free():
        fail(
            ERR_BUFFER,
            f"the message needs {needed} bytes of the attached buffer (its {nbytes} and "
            f"BSEND_OVERHEAD), and of {attached.nbytes} there are {attached.free()} free: attach a "
            f"larger one, or call Flush_buffer",
            state,
        )
    return attached


class _Flush(Operation):
    """Done when some sends are."""

    __slots__ = ("_sends",)

    def __init__(self, sends: list[Operation]) -> None:
        self._sends = sends
        super().__init__(sends[0].engine, "Flush_buffer", sends[0].comm)

    @property
    def done(self) -> bool:
        return all(one.done for one in self._sends)

    @done.setter
    def done(self, done: bool) -> None:
        """It is done when its sends are."""

    def peers(self) -> Iterable[Name]:
        return [name for one in self._sends if not one.done for name in one.peers()]

    def lost(self, failure: BaseException) -> None:
        for one in self._sends:
            if not one.done and failure.peer in one.peers():  # type: ignore[attr-defined]
                one.lost(failure)


def _attached_to(holder: Any) -> Attached | None:
    return getattr(holder, "attached", None)


def _flush(holder: Any) -> Operation:
    attached = _attached_to(holder)
    under_way = attached.under_way() if attached is not None else []
    return _Flush(under_way) if under_way else finished()


def _wait(operation: Operation) -> None:
    if operation.engine is not None:
        with translated(operation.comm):
            operation.engine.wait([operation])


def _attach(holder: Any, buf: Any, handle: Any = None) -> None:
    from sfm_kernel.mpi.buffers.buffer import buffer
    from sfm_kernel.mpi.buffers.special import BUFFER_AUTOMATIC

    if _attached_to(holder) is not None:
        fail(ERR_BUFFER, "a buffer is attached already: detach it (Detach_buffer) first", handle)
    if buf is None or buf is BUFFER_AUTOMATIC:
        holder.attached = Attached(BUFFER_AUTOMATIC, None)
    else:
        holder.attached = Attached(buf, buffer.frombuffer(buf).nbytes)


def _detach(holder: Any) -> Any:
    from sfm_kernel.mpi.buffers.buffer import buffer

    attached = _attached_to(holder)
    if attached is None:
        return buffer()
    _wait(_flush(holder))
    holder.attached = None
    return attached.given


def _request(operation: Operation) -> Request:
    from sfm_kernel.mpi.requests.request import Request

    return Request._for(operation)


class HasBuffer:
    """Part of the handles to which a buffer for buffered sends can be attached."""

    __slots__ = ()

    def Attach_buffer(self, buf: Any) -> None:
        """Let buffered sends here keep as much as this buffer holds.

        Args:
            buf: a writable buffer, which belongs to MPI until it is detached; each message takes
                its size and BSEND_OVERHEAD. None or BUFFER_AUTOMATIC: there is always room.
        Raises:
            Exception: ERR_BUFFER: one is attached already.
        """
        _attach(self._live, buf, self)  # type: ignore[attr-defined]

    def Detach_buffer(self) -> Any:
        """Give the attached buffer back. Blocks until its messages have been received."""
        return _detach(self._live)  # type: ignore[attr-defined]

    def Flush_buffer(self) -> None:
        """Block until the messages in the attached buffer have been received."""
        _wait(_flush(self._live))  # type: ignore[attr-defined]

    def Iflush_buffer(self) -> Request:
        """A request that is complete when the messages in the attached buffer were received."""
        return _request(_flush(self._live))  # type: ignore[attr-defined]


def Attach_buffer(buf: Any) -> None:
    """Let buffered sends keep as much as this buffer holds; see ``Comm.Attach_buffer``."""
    _attach(_process, buf)


def Detach_buffer() -> Any:
    """Give the attached buffer back. Blocks until its messages have been received."""
    return _detach(_process)


def Flush_buffer() -> None:
    """Block until the messages in the attached buffer have been received."""
    _wait(_flush(_process))


def Iflush_buffer() -> Request:
    """A request that is complete when the messages in the attached buffer were received."""
    return _request(_flush(_process))
