"""Sends and receives of buffers between all pairs: modes, types, sizes, order, PROC_NULL."""

from __future__ import annotations

import array
from itertools import product
from typing import Any

import numpy as np
from cases import CODES, LARGE, SIZES, Cases, blank, crowds, numbers, raised
from mpi4py import MPI

cases = Cases()
MODES = ("Send", "Ssend", "Bsend", "Isend", "Issend", "Ibsend")


def received(comm: MPI.Comm, code: str, size: int, source: int, tag: int) -> list[Any]:
    """Receive into more room than is needed."""
    memory, status = blank(code, size + 2), MPI.Status()
    comm.Recv(memory, source, tag, status)
    return [memory, status, status.Get_count(MPI.Datatype.fromcode(code))]


def post(comm: MPI.Comm, mode: str, data: Any, dest: int, tag: int = 0) -> MPI.Request:
    return getattr(comm, mode)(data, dest, tag) or MPI.REQUEST_NULL


def every_mode_and_type(comm: MPI.Intracomm) -> None:
    """Rank 0 sends to all others, who answer with what they got."""
    kinds = list(product(CODES, SIZES))
    for mode in MODES:
        requests, answers = [], []
        for dest, (code, size) in product(range(1, comm.size) if comm.rank == 0 else (), kinds):
            requests.append(post(comm, mode, numbers(code, size, dest), dest, size))
        for code, size in kinds if comm.rank > 0 else ():
            got = received(comm, code, size, 0, size)
            cases.add(f"{mode} {code}", *got)
            answers.append(got[0][:size])
        requests += [post(comm, mode, answer, 0, 7) for answer in answers]
        for source, (code, size) in product(range(1, comm.size) if comm.rank == 0 else (), kinds):
            cases.add(f"{mode} {code}", *received(comm, code, size, source, 7))
        MPI.Request.Waitall(requests)


def ring(name: str, comm: MPI.Intracomm) -> None:
    """Everyone sends to the next and receives from the one before, in every way."""
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (*SIZES, LARGE):
        data = numbers("i", size, comm.rank)
        memory, status = blank("i", size), MPI.Status()
        comm.Sendrecv(data, after, 1, memory, before, 1, status)
        cases.add("Sendrecv" + name, memory, status)

        data = numbers("i", size, comm.rank)
        comm.Sendrecv_replace(data, after, 2, before, MPI.ANY_TAG, status)
        cases.add("Sendrecv_replace" + name, data, status)

        data, memory = numbers("i", size, comm.rank), blank("i", size)
        comm.Isendrecv(data, after, 3, memory, before, 3).Wait()  # MPICH 5.0 has no status of it
        cases.add("Isendrecv" + name, memory)

        if comm.size > 1:  # MPICH 5.0 aborts
            data = numbers("i", size, comm.rank)
            comm.Isendrecv_replace(data, after, 4, MPI.ANY_SOURCE, 4).Wait()
            cases.add("Isendrecv_replace" + name, data)

        data, memory = numbers("i", size, comm.rank), blank("i", size)
        receive = comm.Irecv(memory, before, 5)
        send = comm.Isend(data, after, 5)
        MPI.Request.Waitall([receive, send])
        cases.add("Irecv" + name, memory, receive, send)

        for mode in ("Rsend", "Irsend"):
            memory = blank("i", size)
            receive = comm.Irecv(memory, before, 6)
            comm.Barrier()  # a ready send needs its receive
            post(comm, mode, data, after, 6).Wait()
            receive.Wait(status)
            cases.add(mode + name, memory, status)


def specifications(comm: MPI.Intracomm) -> None:
    """The ways to say what is sent, each sent to oneself."""

    def through(case: str, send: Any, receive: Any, memory: Any) -> None:
        status = MPI.Status()
        requests: list[MPI.Request] = []
        try:
            requests.append(comm.Irecv(receive, comm.rank, 9))
            requests.append(comm.Isend(send, comm.rank, 9))
        except Exception as error:  # noqa: BLE001 - its class is the result
            cases.add(case, type(error).__name__)
            for request in requests:
                request.Cancel()
                request.Wait()
            return
        requests[0].Wait(status)
        requests[1].Wait()
        cases.add(case, memory, status.Get_count(MPI.BYTE))

    ten = np.arange(10, dtype="i")
    for case, send in {
        "array": ten,
        "list of array": [ten],
        "with type": [ten, MPI.INT],
        "with code": [ten, "i"],
        "tuple": (ten, MPI.INT),
        "with count": [ten, 4],
        "count and type": [ten, 4, MPI.INT],
        "count, displacement": [ten, (4, 3)],
        "count, displacement, type": [ten, (4, 3), MPI.INT],
        "displacement, None": [ten, (None, 3), MPI.INT],
        "None, type": [ten, None, MPI.INT],
        "four items": [ten, 3, 2, MPI.INT],
        "other type": [ten, MPI.SHORT],
        "bytes": ten.tobytes(),
        "bytearray": bytearray(ten.tobytes()),
        "memoryview": memoryview(ten),
        "array.array": array.array("i", range(10)),
        "slice": ten[2:7],
        "matrix": ten.reshape(2, 5),
        "Fortran": np.asfortranarray(ten.reshape(2, 5)),
        "strided": ten[::2],
        "column": ten.reshape(5, 2)[:, 0],
        "empty": ten[:0],
        "none at all": None,
        "a number": 5,
        "a list of numbers": [1, 2],
        "five items": [ten, 1, 0, MPI.INT, 0],
        "negative count": [ten, -1, MPI.INT],
        "bottom": [MPI.BOTTOM, 0, MPI.INT],
        "text": "text",
        "wrong code": [ten, "no code"],
        "MPI.buffer": MPI.buffer(ten),
    }.items():
        memory = blank("i", 12)
        through(f"send {case}", send, memory, memory)
    for case, make in {
        "array": lambda buffer: buffer,
        "count, displacement": lambda buffer: [buffer, (10, 2), MPI.INT],
        "other type": lambda buffer: [buffer, MPI.BYTE],
        "read-only": lambda buffer: buffer.tobytes(),
        "matrix": lambda buffer: buffer.reshape(3, 4),
        "strided": lambda buffer: buffer[::1].reshape(3, 4)[:, :2],
        "none": lambda buffer: None,
    }.items():
        memory = blank("i", 12)
        through(f"receive {case}", ten, make(memory), memory)
    for array_of in (np.float16, np.dtype(">i4"), "S3", "U2"):
        values = np.zeros(2, array_of)
        through(f"send {np.dtype(array_of)}", values, bytearray(64), b"")


def nobody(comm: MPI.Intracomm) -> None:
    """Messages to and from PROC_NULL."""
    data, status = np.arange(3), MPI.Status()
    nowhere = MPI.PROC_NULL
    for mode in (*MODES, "Rsend", "Irsend"):
        post(comm, mode, data, nowhere)
        post(comm, mode, None, nowhere)
    comm.Recv(data, nowhere, 3, status)
    cases.add("PROC_NULL", data, status)
    comm.Irecv(None, nowhere).Wait(status)
    cases.add("PROC_NULL", data, status)
    comm.Sendrecv(data, nowhere, 0, data, nowhere, 0, status)
    cases.add("PROC_NULL", data, status, comm.Iprobe(nowhere, 5, status), status)
    comm.Probe(nowhere, 5, status)
    message = comm.Mprobe(nowhere, 5, status)
    cases.add("PROC_NULL", message == MPI.MESSAGE_NO_PROC, status)
    message.Recv(data, status)
    cases.add("PROC_NULL", message, data, status)
    requests = [comm.Irecv(data, 0)] if comm.rank == comm.size - 1 else []
    if comm.rank == 0:
        comm.Send(np.arange(1, 4), comm.size - 1)
    MPI.Request.Waitall(requests)
    cases.add("PROC_NULL", data)


def order(comm: MPI.Intracomm) -> None:
    """Messages of one sender are received in the order in which they were sent."""
    last = comm.size - 1
    requests, sent = [], np.arange(5)
    if comm.rank == 0:
        for number, tag in enumerate((1, 2, 1, 2, 3)):
            requests.append(comm.Isend(sent[number:], last, tag))
    if comm.rank == last:
        number, status = np.empty(5, int), MPI.Status()
        for tag in (2, MPI.ANY_TAG, 3, MPI.ANY_TAG, MPI.ANY_TAG):
            comm.Recv(number, MPI.ANY_SOURCE, tag, status)
            cases.add("order", number[0], status)
    MPI.Request.Waitall(requests)


def buffered(comm: MPI.Intracomm) -> None:
    """Buffered sends, and the calls that attach, flush and detach their buffer."""
    MPI.Detach_buffer()
    cases.error("Bsend without buffer", comm.Bsend, bytes(9), comm.rank)
    room = MPI.Alloc_mem(MPI.BSEND_OVERHEAD + 800)
    MPI.Attach_buffer(room)
    cases.error("too small a buffer", comm.Bsend, bytes(5000), comm.rank)
    comm.Bsend(b"buffered", comm.rank)
    memory = bytearray(8)
    comm.Recv(memory, comm.rank)
    MPI.Flush_buffer()
    MPI.Iflush_buffer().Wait()
    cases.add("Bsend", memory, MPI.Detach_buffer() is not None)
    MPI.Free_mem(room)
    for buffer in (bytearray(MPI.BSEND_OVERHEAD + 800), MPI.BUFFER_AUTOMATIC):
        case = f"buffer of a communicator {type(buffer).__name__}"
        cases.error(case, comm.Attach_buffer, buffer)
        comm.Bsend(b"buffered", comm.rank)
        comm.Recv(memory, comm.rank)
        comm.Flush_buffer()
        comm.Iflush_buffer().Wait()
        cases.add(case, memory, raised(comm.Detach_buffer))
    MPI.Attach_buffer(bytearray(1 << 20))


MPI.Attach_buffer(bytearray(1 << 20))
duplicate = MPI.COMM_WORLD.Dup()
specifications(MPI.COMM_SELF)
nobody(duplicate)
order(duplicate)
buffered(duplicate)
every_mode_and_type(duplicate)
for name, comm in crowds():
    ring(name, comm)
MPI.Detach_buffer()
cases.done()
