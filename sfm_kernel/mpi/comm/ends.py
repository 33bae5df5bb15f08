"""The ends of messages: of what the calls that send, receive and probe are made."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfm_kernel.mpi.base.buffered import room_for
from sfm_kernel.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    BSEND_OVERHEAD,
    ERR_RANK,
    ERR_TAG,
    PROC_NULL,
)
from sfm_kernel.mpi.base.errors import fail, translated
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.pickles import pickle
from sfm_kernel.mpi.base.scalars import scalar
from sfm_kernel.mpi.buffers import Elements, for_recv, for_send
from sfm_kernel.mpi.datatypes.predefined import BYTE
from sfm_kernel.mpi.engine.communicator import CommState
from sfm_kernel.mpi.engine.operation import Operation, finished
from sfm_kernel.mpi.engine.receives import PickledLength, Receive, data_bytes, template
from sfm_kernel.mpi.engine.sends import Send
from sfm_kernel.mpi.requests.message import MESSAGE_NO_PROC, Message
from sfm_kernel.mpi.requests.request import raise_from
from sfm_kernel.mpi.requests.status import Status

TAG_UB = 2**31 - 1


class Ends(Handle[CommState]):
    """Sends, receives and probes, as operations."""

    __slots__ = ()

    def _peer(self, rank: int, tag: int) -> CommState:
        state = self._live
        if not 0 <= rank < len(state.peers):
            fail(ERR_RANK, f"{_range(state)}, not {rank}", state)
        if not 0 <= tag <= TAG_UB:
            fail(ERR_TAG, f"a tag is a number from 0 to {TAG_UB}, not {tag}", state)
        return state

    def _elements(self, buf: Any, dest: int) -> Elements | None:
        return None if dest == PROC_NULL else for_send(buf)

    def _into(self, buf: Any, source: int) -> Elements | None:
        return None if source == PROC_NULL else for_recv(buf)

    def _send(
        self,
        elements: Elements | None,
        dest: int,
        tag: int,
        sync: bool = False,
        standard: bool = False,
    ) -> Operation:
        """Begin to send."""
        dest, tag = scalar(dest), scalar(tag)
        if dest == PROC_NULL or elements is None:
            return finished(PROC_NULL)
        state = self._peer(dest, tag)
        sync = sync or (standard and state.process.buffering == 0)
        send = Send(state, state.peers[dest], tag, elements, sync)
        with translated(state):
            state.process.engine.start(send.start)
        return send

    def _send_buffered(self, buf: Any, dest: int, tag: int) -> Operation:
        dest, tag = scalar(dest), scalar(tag)
        elements = self._elements(buf, dest)
        if elements is None:
            return finished(PROC_NULL)
        room = room_for(self._peer(dest, tag), elements.nbytes)
        copy = _bytes(elements.get(0, elements.nbytes).copy())
        room.keep(self._send(copy, dest, tag), copy.nbytes + BSEND_OVERHEAD)
        return finished(dest, tag)

    def _send_object_buffered(self, obj: Any, dest: int, tag: int) -> Operation:
        dest, tag = scalar(dest), scalar(tag)
        if dest != PROC_NULL:
            room_for(self._peer(dest, tag), len(pickle.dumps(obj)))
        return self._send_object(obj, dest, tag)

    def _send_object(
        self,
        obj: Any,
        dest: int,
        tag: int,
        sync: bool = False,
        standard: bool = False,
    ) -> Operation:
        dest, tag = scalar(dest), scalar(tag)
        if dest == PROC_NULL:
            return finished(PROC_NULL)
        state = self._peer(dest, tag)
        if not pickle.is_default:
            data = _bytes(pickle.dumps(obj))
            return self._send(data, dest, tag, sync, standard)
        peer = state.peers[dest]
        if sync or (standard and state.process.buffering == 0):
            send = Send(state, peer, tag, None, sync=True)
            with translated(state):
                state.process.engine.start(lambda: send.start_object(obj))
            return send
        with translated(state):
            state.loose.send(dest=peer, tag=tag, obj=obj)
        return finished(dest, tag)

    def _is_alone(self, source: int, tag: int) -> bool:
        """Whether a send that does not wait, and then a receive, need nobody's attention else."""
        state = self._live
        if source != PROC_NULL:
            self._wanted(state, source, tag)
        return state.process.engine.idle

    def _post(self, source: int, tag: int, into: Elements | None) -> Operation:
        """Begin to receive."""
        state = self._live
        if source == PROC_NULL:
            return finished(PROC_NULL)
        receive = Receive(state, self._wanted(state, source, tag), into)
        with translated(state):
            receive.post()
        return receive

    def _wanted(self, state: CommState, source: int, tag: int) -> dict[str, Any]:
        source, tag = scalar(source), scalar(tag)
        if source != ANY_SOURCE and not 0 <= source < len(state.peers):
            fail(ERR_RANK, f"{_range(state)}, or ANY_SOURCE, not {source}", state)
        if tag != ANY_TAG and not 0 <= tag <= TAG_UB:
            fail(ERR_TAG, f"a tag is a number from 0 to {TAG_UB}, or ANY_TAG, not {tag}", state)
        return template(state, source, tag)

    def _receive(
        self, source: int, tag: int, into: Elements | None, status: Status | None, call: str
    ) -> Any:
        """Receive, and wait for it, in this call of MPI."""
        state = self._live
        if source == PROC_NULL:
            if status is not None:
                status._set(PROC_NULL, ANY_TAG)
            return None
        wanted = self._wanted(state, source, tag)
        engine = state.process.engine
        receive = Receive(state, wanted, into)
        if engine.idle:
            m = None
            try:
                with translated(state):
                    m = state.within(call).recv(**wanted)
                return _take(receive, m, status, call)
            except BaseException:
                if m is not None:
                    m._put_back()  # Stop came before anybody looked at it
                raise
        with translated(state), receive:
            receive.post()
            engine.wait([receive], call)
        return end(receive, status)

    def _received(self, m: Any, buf: Any, status: Status | None) -> Any:
        """A message that the native receive has taken, and leaves to Python."""
        receive = Receive(self._live, {}, None if buf is None else for_recv(buf))
        return _take(receive, m, status, "recv" if buf is None else "Recv")

    def _translated(self, failure: BaseException) -> None:
        """Raise an error of the messaging as one of MPI."""
        with translated(self._live):
            raise failure

    def _both(self, send: Operation, receive: Operation, status: Status | None, call: str) -> Any:
        engine = receive.engine or send.engine
        if engine is not None:
            with translated(receive.comm or send.comm):
                engine.wait([send, receive], call)
        end(send, None)
        return end(receive, status)

    def _exchange(
        self, buf: Any, dest: int, sendtag: int, source: int, recvtag: int
    ) -> tuple[Operation, Operation]:
        if dest == source == PROC_NULL:
            return finished(PROC_NULL), finished(PROC_NULL)
        elements = for_recv(buf)
        copy = _bytes(elements.get(0, elements.nbytes).copy())
        receive = self._post(source, recvtag, elements)
        return self._send(copy, dest, sendtag), receive

    def _probe(
        self, source: int, tag: int, status: Status | None, *, take: bool, wait: bool
    ) -> Message | None:
        state = self._live
        if source == PROC_NULL:
            if status is not None:
                status._set(PROC_NULL, ANY_TAG)
            return Message(MESSAGE_NO_PROC)
        wanted = self._wanted(state, source, tag)
        engine = state.process.engine
        sought = _Probe(state, wanted, take, wait)
        with translated(state):
            if wait:
                engine.wait_until(sought.look, sought.text, [sought])
            elif not sought.look():
                engine.poll([sought], "Improbe" if take else "Iprobe")
        if sought.failure is not None:
            raise_from(sought)
        m = sought.found
        if m is None:
            return None
        if status is not None:
            if "obj" in m:
                status._set(state.ranks[m.src], m.tag, PickledLength(m.obj))
            else:
                status._set(state.ranks[m.src], m.tag, data_bytes(m))
        return Message._found(state, m)


class _Probe(Operation):
    """A look for a message, again and again."""

    __slots__ = ("_take", "_wanted", "found")

    def __init__(self, state: CommState, wanted: dict[str, Any], take: bool, wait: bool) -> None:
        text = ("Mprobe" if take else "Probe") if wait else ""
        super().__init__(state.process.engine, text, state)
        self._wanted, self._take = wanted, take
        self.found: Any = None

    def look(self) -> bool:
        """Whether there is one; or there never will be."""
        if self.found is None and not self.done:
            self.found = self.comm.process.engine.probe(self.comm, self._wanted, self._take)
            self.done = self.found is not None
        return self.done

    def peers(self) -> tuple[Any, ...]:
        return (self._wanted["src"],) if "src" in self._wanted else ()

    def wanted(self) -> tuple[dict[str, Any], int]:
        return self._wanted, self.comm.context.space


class Both(Operation):
    """A send and a receive, of which the receive says how it ended."""

    __slots__ = ("_parts",)

    def __init__(self, send: Operation, receive: Operation) -> None:
        self._parts = (send, receive)
        super().__init__(receive.engine or send.engine, "Isendrecv", receive.comm or send.comm)

    @property
    def done(self) -> bool:
        """Whether both have ended."""
        ended = all(part.done for part in self._parts)
        if ended:
            send, receive = self._parts
            self.settle(receive.source, receive.tag, receive.count)
            self.failure = receive.failure or send.failure
        return ended

    @done.setter
    def done(self, value: bool) -> None:
        pass

    def peers(self) -> tuple[Any, ...]:
        return tuple(name for part in self._parts if not part.done for name in part.peers())

    def lost(self, failure: BaseException) -> None:
        for part in self._parts:
            if not part.done:
                part.lost(failure)


def _bytes(data: Any) -> Elements:
    """All of these bytes."""
    array = np.frombuffer(data, np.uint8)
    return Elements(array, BYTE, len(array))


def _range(state: CommState) -> str:
    what = state.name or "this communicator"
    return f"a rank of {what} is a number from 0 to {len(state.peers) - 1}, or PROC_NULL"


def wait(operation: Operation, call: str) -> None:
    if operation.engine is not None and not operation.done:
        with translated(operation.comm):
            operation.engine.wait([operation], call)
    end(operation, None)


def _take(receive: Receive, m: Any, status: Status | None, call: str) -> Any:
    engine = receive.state.process.engine
    with translated(receive.state), receive:
        engine.start(lambda: receive.take(m, alone=engine.idle))
        receive.stream()  # not alone with the engine: other threads go on
        engine.wait([receive], call)
    return end(receive, status)


def end(operation: Operation, status: Status | None) -> Any:
    if status is not None:
        status._set_from(operation)
    if operation.failure is not None:
        raise_from(operation)
    return operation.result
