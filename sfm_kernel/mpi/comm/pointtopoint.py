"""Messages between two processes: the calls of communicators that send, receive and probe."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

from sfm_kernel.endpoint import add_direct
from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG
from sfm_kernel.mpi.comm.ends import Both, Ends, wait
from sfm_kernel.mpi.engine.sends import EAGER_BYTES
from sfm_kernel.mpi.requests.message import Message
from sfm_kernel.mpi.requests.request import Request
from sfm_kernel.mpi.requests.status import Status


class PointToPoint(Ends):
    """Sends, receives and probes.

    Calls that begin with a capital send and receive the items of buffers, the others any objects
    that can be pickled. Ranks are those of the other group, if there is one.

    Order: two messages from one process to another, which fit the same receives, are received in
        the order of the sends, whatever their sizes.
    Blocks: ``Send`` and ``send`` until the buffer may be used again: at once where the data
        have at most 1 MB and the receiver has less than ``mpi.buffering`` bytes waiting, else
        until the receiver has them. ``Ssend`` until a receive has matched. Receives until there is
        a message. Stop (KeyboardInterrupt) ends each of them.
    Raises:
        Exception: ERR_RANK, ERR_TAG: there is no such rank or tag. ERR_TRUNCATE: the message is
            longer than the buffer. ERR_PROC_FAILED: the other process has died.
    """

    __slots__ = ()

    # Native (native/python/src/direct.rs). What is not simple they leave to `_send_otherwise` ….
    if TYPE_CHECKING:

        def send(self, obj: Any, dest: int, tag: int = 0) -> None: ...
        def recv(
            self,
            buf: Any = None,
            source: int = ANY_SOURCE,
            tag: int = ANY_TAG,
            status: Status | None = None,
        ) -> Any: ...
        def Send(self, buf: Any, dest: int, tag: int = 0) -> None: ...
        def Recv(
            self,
            buf: Any,
            source: int = ANY_SOURCE,
            tag: int = ANY_TAG,
            status: Status | None = None,
        ) -> None: ...

    # ---- objects ----

    def _send_otherwise(self, obj: Any, dest: int, tag: int = 0) -> None:
        wait(self._send_object(obj, dest, tag, standard=True), "send")

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object; returns when a receive has matched it."""
        wait(self._send_object(obj, dest, tag, sync=True), "ssend")

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object without ever waiting; from the attached buffer."""
        wait(self._send_object_buffered(obj, dest, tag), "bsend")

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send an object."""
        return Request._for(self._send_object(obj, dest, tag, standard=True), "isend")

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send an object; the request is complete when a receive has matched it."""
        return Request._for(self._send_object(obj, dest, tag, sync=True), "issend")

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """As ``isend``, from the attached buffer."""
        return Request._for(self._send_object_buffered(obj, dest, tag), "ibsend")

    def _recv_otherwise(
        self,
        buf: Any = None,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        if buf is not None:
            what = "recv needs no buffer, and 'buf' is not looked at: write recv(source=…)"
            warnings.warn(what, UserWarning, stacklevel=2)
        return self._receive(source, tag, None, status, "recv")

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive an object, which ``Request.wait`` gives."""
        return Request._for(self._post(source, tag, None), "irecv")

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
        if self._is_alone(source, recvtag):
            self._send_object(sendobj, dest, sendtag)
            return self._receive(source, recvtag, None, status, "sendrecv")
        receive = self._post(source, recvtag, None)
        return self._both(self._send_object(sendobj, dest, sendtag), receive, status, "sendrecv")

    # ---- buffers ----

    def _Send_otherwise(self, buf: Any, dest: int, tag: int = 0) -> None:
        elements = self._elements(buf, dest)
        wait(self._send(elements, dest, tag, standard=True), "Send")

    def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send the items of a buffer; returns when a receive has matched them."""
        wait(self._send(self._elements(buf, dest), dest, tag, sync=True), "Ssend")

    def Bsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send the items of a buffer without ever waiting; from the attached buffer."""
        wait(self._send_buffered(buf, dest, tag), "Bsend")

    def Rsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send the items of a buffer to a receive that is posted already; as ``Send``."""
        self.Send(buf, dest, tag)

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send the items of a buffer, which must not change until the end."""
        return Request._for(
            self._send(self._elements(buf, dest), dest, tag, standard=True), "Isend"
        )

    def Issend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """As ``Isend``; complete when a receive has matched."""
        return Request._for(self._send(self._elements(buf, dest), dest, tag, sync=True), "Issend")

    def Ibsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """As ``Isend``, from the attached buffer."""
        return Request._for(self._send_buffered(buf, dest, tag), "Ibsend")

    def Irsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """As ``Isend``, to a receive that is posted already."""
        return self.Isend(buf, dest, tag)

    def _Recv_otherwise(
        self,
        buf: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        self._receive(source, tag, self._into(buf, source), status, "Recv")

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive items into a buffer."""
        return Request._for(self._post(source, tag, self._into(buf, source)), "Irecv")

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send the items of one buffer and receive into another at once."""
        sent, into = self._elements(sendbuf, dest), self._into(recvbuf, source)
        if (sent is None or sent.nbytes <= EAGER_BYTES) and self._is_alone(source, recvtag):
            self._send(sent, dest, sendtag)
            self._receive(source, recvtag, into, status, "Sendrecv")
            return
        receive = self._post(source, recvtag, into)
        self._both(self._send(sent, dest, sendtag), receive, status, "Sendrecv")

    def Sendrecv_replace(
        self,
        buf: Any,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send the items of a buffer, and receive into the same."""
        send, receive = self._exchange(buf, dest, sendtag, source, recvtag)
        self._both(send, receive, status, "Sendrecv_replace")

    def Isendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Begin a ``Sendrecv``."""
        sent, into = self._elements(sendbuf, dest), self._into(recvbuf, source)
        receive = self._post(source, recvtag, into)
        return Request._for(Both(self._send(sent, dest, sendtag), receive), "Isendrecv")

    def Isendrecv_replace(
        self,
        buf: Any,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Begin a ``Sendrecv_replace``."""
        return Request._for(
            Both(*self._exchange(buf, dest, sendtag, source, recvtag)), "Isendrecv_replace"
        )

    # ---- probing ----

    def Probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Literal[True]:
        """Wait until there is a message that a receive with these arguments would get."""
        self._probe(source, tag, status, take=False, wait=True)
        return True

    def Iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether there is such a message."""
        return self._probe(source, tag, status, take=False, wait=False) is not None

    def Mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message, and take it: only the ``Message`` can receive it."""
        message = self._probe(source, tag, status, take=True, wait=True)
        assert message is not None
        return message

    def Improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """Take a message if there is one."""
        return self._probe(source, tag, status, take=True, wait=False)

    probe = Probe
    iprobe = Iprobe
    mprobe = Mprobe
    improbe = Improbe


add_direct(PointToPoint)
