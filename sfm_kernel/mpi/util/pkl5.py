"""Communicators for objects with large buffers.

In mpi4py these are other than ``MPI.Comm``, whose objects are copied into one text of bytes. Here
the buffers of objects always travel as their memory, so this differs in its requests and messages
only, and in having a ``pickle`` of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.MPI import ANY_SOURCE, ANY_TAG, Pickle, Status

__all__ = ["Comm", "Intercomm", "Intracomm", "Message", "Pickle", "Request", "pickle"]

pickle = Pickle()
"""How objects become bytes and buffers; its functions may be changed, on all processes alike."""


_Part = TypeVar("_Part")


class _Packed:
    """An object that travels as what ``pickle`` makes of it. It arrives as the object."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        data, buffers = pickle.dumps_oob(self._value)
        return _unpacked, (data, [np.frombuffer(one, np.uint8) for one in buffers])


def _unpacked(data: bytes, buffers: list[Any]) -> Any:
    return pickle.loads_oob(data, buffers)


def _packed(value: Any) -> Any:
    return value if pickle.is_default else _Packed(value)


def _all_packed(values: Iterable[Any] | None) -> Any:
    return None if values is None else [_packed(one) for one in values]


class _BigMPI:
    """How many bytes one message may have: any number, whatever is set here."""

    blocksize = (1 << 63) - 1


_bigmpi = _BigMPI()


class _Parts(tuple[_Part, ...]):
    """Handles of MPI that are one here; equal to another of the same, and to its only part."""

    __slots__ = ()

    _part: ClassVar[type]
    """What the parts are."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)):
            return tuple(self) == tuple(other)
        if isinstance(other, self._part):
            return all(one == other for one in self)
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        return any(self)


class Request(_Parts[MPI.Request]):
    """A request of one of these communicators: a tuple of one ``MPI.Request``."""

    __slots__ = ()

    _part = MPI.Request

    def __new__(cls, request: MPI.Request | Iterable[MPI.Request] | None = None) -> Self:
        """Without an argument, one that is complete."""
        if request is None:
            request = MPI.REQUEST_NULL
        parts = (request,) if isinstance(request, MPI.Request) else request
        return super().__new__(cls, parts)

    def Free(self) -> None:
        """Let go of it; what it stands for goes on to its end."""
        for one in self:
            one.Free()

    def free(self) -> None:
        """As ``Free``; harmless when repeated."""
        for one in self:
            one.free()

    def cancel(self) -> None:
        """Give it up, if nothing has happened yet."""
        for one in self:
            one.Cancel()

    def get_status(self, status: Status | None = None) -> bool:
        """Whether it is complete; it stays as it is."""
        return MPI.Request.Get_status_all(self, None if status is None else [status])

    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Whether it is complete, and if so the object that was received."""
        flag, values = self.testall([self], None if status is None else [status])
        return flag, values[0] if values else None

    def wait(self, status: Status | None = None) -> Any:
        """Wait until it is complete; the object that was received."""
        return self.waitall([self], None if status is None else [status])[0]

    @classmethod
    def get_status_all(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> bool:
        """Whether all are complete; they stay as they are."""
        return MPI.Request.Get_status_all(_parts(requests), statuses)

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Whether all are complete, and if so their objects."""
        return MPI.Request.testall(_parts(requests), statuses)

    @classmethod
    def waitall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> Any:
        """Wait until all are complete; their objects."""
        return MPI.Request.waitall(_parts(requests), statuses)


def _parts(requests: Iterable[Request]) -> list[MPI.Request]:
    return [part for request in requests for part in request]


class Message(_Parts[MPI.Message]):
    """A message that ``mprobe`` has found: a tuple of one ``MPI.Message``."""

    __slots__ = ()

    _part = MPI.Message

    def __new__(cls, message: MPI.Message | Iterable[MPI.Message] | None = None) -> Self:
        """Without an argument, one that was received."""
        if message is None:
            message = MPI.MESSAGE_NULL
        parts = (message,) if isinstance(message, MPI.Message) else message
        return super().__new__(cls, parts)

    def free(self) -> None:
        """Does nothing: a message is there until it is received."""
        for one in self:
            one.free()

    def recv(self, status: Status | None = None) -> Any:
        """Receive the object."""
        return self[0].recv(status)

    def irecv(self) -> Request:
        """Begin to receive the object, which ``Request.wait`` gives."""
        return Request(self[0].irecv())

    @classmethod
    def probe(
        cls,
        comm: MPI.Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Message:
        """Wait for a message, and take it."""
        return cls(MPI.Comm.Mprobe(comm, source, tag, status))

    @classmethod
    def iprobe(
        cls,
        comm: MPI.Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Message | None:
        """Take a message if there is one."""
        found = MPI.Comm.Improbe(comm, source, tag, status)
        return None if found is None else cls(found)


class Comm(MPI.Comm):
    """A communicator; see ``MPI.Comm``. A second handle: ``pkl5.Intracomm(MPI.COMM_WORLD)``."""

    __slots__ = ()

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        super().send(_packed(obj), dest, tag)

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object without ever waiting."""
        super().bsend(_packed(obj), dest, tag)

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object; returns when a receive has matched it."""
        super().ssend(_packed(obj), dest, tag)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Begin to send an object."""
        return Request(super().isend(_packed(obj), dest, tag))

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Begin to send an object."""
        return Request(super().ibsend(_packed(obj), dest, tag))

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Begin to send an object; the request is complete when a receive has matched it."""
        return Request(super().issend(_packed(obj), dest, tag))

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> NoReturn:
        """Not there, as in mpi4py.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("pkl5 has no irecv: use mprobe(source, tag).irecv()")

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Send one object and receive another at once."""
        return super().sendrecv(_packed(sendobj), dest, sendtag, recvbuf, source, recvtag, status)

    def mprobe(  # type: ignore[override]
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message, and take it."""
        return Message.probe(self, source, tag, status)

    def improbe(  # type: ignore[override]
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Take a message if there is one."""
        return Message.iprobe(self, source, tag, status)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object, on all members."""
        return super().bcast(_packed(obj), root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """The objects of all members, by rank, at the root; None elsewhere."""
        return super().gather(_packed(sendobj), root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """The own one of the root's objects, of which it gives one for each rank."""
        return super().scatter(_all_packed(sendobj), root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """The objects of all members, by rank."""
        return super().allgather(_packed(sendobj))

    def alltoall(self, sendobj: Sequence[Any] | None) -> list[Any]:
        """Of each member the object that it gave for this rank; each gives one for each rank."""
        return super().alltoall(_all_packed(sendobj))


class Intracomm(Comm, MPI.Intracomm):
    """A communicator of one group."""

    __slots__ = ()


class Intercomm(Comm, MPI.Intercomm):
    """A communicator between two groups."""

    __slots__ = ()
