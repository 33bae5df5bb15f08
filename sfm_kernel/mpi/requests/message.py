"""Message: a message that a matching probe has taken out of the queue, for one receive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG, ERR_REQUEST, PROC_NULL
from sfm_kernel.mpi.base.errors import translated
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.buffers import for_recv
from sfm_kernel.mpi.engine.operation import finished
from sfm_kernel.mpi.engine.receives import Receive
from sfm_kernel.mpi.requests.request import Request, raise_from
from sfm_kernel.mpi.requests.status import Status

if TYPE_CHECKING:
    from sfm_kernel import message
    from sfm_kernel.mpi.buffers import Elements
    from sfm_kernel.mpi.comm.comm import Comm
    from sfm_kernel.mpi.engine.communicator import CommState


class MessageState:
    """The message, and where it was found; none of PROC_NULL."""

    __slots__ = ("__weakref__", "comm", "found")

    def __init__(self, comm: CommState | None, found: message.Message | None) -> None:
        self.comm, self.found = comm, found


class Message(Handle[MessageState]):
    """A message that ``Mprobe`` has found: no other receive can get it. Null once received."""

    __slots__ = ()

    _null_error = ERR_REQUEST
    _free_call = ""

    @classmethod
    def _found(cls, comm: CommState, found: message.Message) -> Self:
        return cls._of(MessageState(comm, found))

    def Recv(self, buf: Any, status: Status | None = None) -> None:
        """Receive it into a buffer."""
        receive = self._take(buf, into=True)
        self._wait(receive, status, "Recv")

    def Irecv(self, buf: Any) -> Request:
        """As ``Recv``, without waiting for the rest of a large one."""
        return Request._for(self._take(buf, into=True), "Irecv")

    def recv(self, status: Status | None = None) -> Any:
        """Receive the object."""
        receive = self._take(None, into=False)
        self._wait(receive, status, "recv")
        return receive.result

    def irecv(self) -> Request:
        """As ``recv``, without waiting."""
        return Request._for(self._take(None, into=False), "irecv")

    def _take(self, buf: Any, into: bool) -> Any:
        state = self._live
        elements: Elements | None = for_recv(buf) if into and state.found is not None else None
        if self is not MESSAGE_NO_PROC:
            self._state = None
        found, comm = state.found, state.comm
        if found is None or comm is None:
            return finished(PROC_NULL, ANY_TAG)
        receive = Receive(comm, {}, elements)
        with translated(comm):
            comm.process.engine.start(lambda: receive.take(found))
        return receive

    def _wait(self, receive: Any, status: Status | None, call: str) -> None:
        if receive.engine is not None:
            with translated(receive.comm):
                receive.engine.wait([receive], call)
        if status is not None:
            status._set_from(receive)
        if receive.failure is not None:
            raise_from(receive)

    # ---- probing ----

    @classmethod
    def Probe(
        cls,
        comm: Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Message:
        """Wait for a message and take it; as ``Comm.Mprobe``."""
        return cls(comm.Mprobe(source, tag, status))

    @classmethod
    def Iprobe(
        cls,
        comm: Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Message | None:
        """Take a message if there is one; as ``Comm.Improbe``."""
        found = comm.Improbe(source, tag, status)
        return None if found is None else cls(found)

    probe = Probe
    iprobe = Iprobe


MESSAGE_NULL = Message._constant("MESSAGE_NULL")
MESSAGE_NO_PROC = Message._constant("MESSAGE_NO_PROC", MessageState(None, None))
