"""Lower-case calls: any object, sent between two processes and through collectives."""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import Any

import numpy as np
from cases import Cases, crowds
from mpi4py import MPI

cases = Cases()
OBJECTS: list[Any] = [
    None,
    True,
    -7,
    2**80,
    1.5,
    2 - 3j,
    "text, é and 文",
    b"bytes",
    b"",
    [1, [2, (3, {})]],
    {"key": {1, 2}, 3: None},
    Fraction(1, 3),
    np.arange(6.0).reshape(2, 3),
    "long " * 60_000,
    range(3),
    ValueError("no", 5),
]


def point_to_point(name: str, comm: MPI.Intracomm) -> None:
    after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for number, value in enumerate(OBJECTS):
        status = MPI.Status()
        got = comm.sendrecv(value, after, number, None, before, number, status)
        cases.add(f"sendrecv{name}", got, status.source, status.tag)
        for mode in ("isend", "issend", "ibsend"):
            request = getattr(comm, mode)([comm.rank, value], after, number)
            cases.add(f"{mode}{name}", comm.recv(None, before, number, status))
            request.wait()
            cases.add(f"{mode}{name}", status.source, status.tag, request)
    for mode in ("send", "ssend", "bsend"):
        receive = comm.irecv(source=before, tag=1)
        getattr(comm, mode)((mode, comm.rank), after, 1)
        cases.add(f"{mode}{name}", receive.wait())
    receives = [comm.irecv(source=before, tag=tag) for tag in (5, 3, 4)]
    sends = [comm.isend(f"tag {tag}", after, tag) for tag in (3, 4, 5)]
    statuses = [MPI.Status()]
    cases.add(f"waitall{name}", MPI.Request.waitall(receives, statuses))
    cases.add(f"waitall{name}", [(status.source, status.tag) for status in statuses])
    cases.add(f"waitall{name}", MPI.Request.waitall(sends))
    room = bytearray(1 << 16)
    receive = comm.irecv(room, before, 2)
    comm.isend({"into": "room"}, after, 2).wait()
    cases.add(f"irecv into room{name}", receive.wait())
    pickled = MPI.pickle.dumps(list(range(100)))
    whole = MPI.BYTE.Create_contiguous(len(pickled)).Commit()
    send, into = comm.Isend([pickled, 1, whole], after, 2), bytearray(len(pickled))
    comm.Recv([into, 1, whole], before, 2)  # as mpi4py.util.pkl5 does
    cases.add(f"pickled by the program{name}", MPI.pickle.loads(into))
    send.Wait()
    whole.Free()
    send = comm.isend("recv", after, 2)
    cases.add(f"recv into room{name}", comm.recv(room, before, 2))
    send.wait()
    # A pickle, received as a message of bytes.
    send = comm.isend({"a": 1}, after, 8)
    status = MPI.Status()
    comm.probe(before, 8, status)
    data = bytearray(status.Get_count())
    comm.Recv(data, before, 8)
    send.wait()
    cases.add(f"pickle{name}", MPI.pickle.loads(data))
    send = comm.Isend(MPI.pickle.dumps(["by hand"]), after, 8)
    cases.add(f"pickle{name}", comm.recv(source=before, tag=8))
    send.Wait()


def collectives(name: str, comm: MPI.Intracomm) -> None:
    rank, n = comm.rank, comm.size
    comm.barrier()
    for value in OBJECTS:
        for root in {0, n - 1}:
            here = rank == root
            cases.add(f"bcast{name}", comm.bcast(value if here else "other", root))
            cases.add(f"gather{name}", comm.gather((rank, value), root))
            given = [(to, value) for to in range(n)] if here else None
            cases.add(f"scatter{name}", comm.scatter(given, root))
        cases.add(f"allgather{name}", comm.allgather((rank, value)))
        cases.add(f"alltoall{name}", comm.alltoall([(rank, to, value) for to in range(n)]))
    cases.add(f"alltoall{name}", comm.alltoall(None))
    cases.error(f"alltoall of too many{name}", comm.alltoall, [0] * (n + 1))
    if n == 1:
        cases.error("scatter of none", comm.scatter, None)
        cases.error("scatter of two", comm.scatter, [1, 2])
        cases.error("scatter of a number", comm.scatter, 5)
        cases.error("a function cannot be pickled", comm.bcast, lambda: None)


def reductions(name: str, comm: MPI.Intracomm) -> None:
    rank, n = comm.rank, comm.size
    for word in ("SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR"):
        op = getattr(MPI, word)
        for value in (rank + 1, bool(rank % 2)):
            case = f"reduce {word}{name}"
            cases.add(case, comm.allreduce(value, op), comm.reduce(value, op, n - 1))
            cases.add(case, comm.scan(value, op), comm.exscan(value, op))
    for value in (rank / 4, Fraction(1, rank + 2), np.arange(3) * rank):
        cases.add(f"reduce numbers{name}", comm.allreduce(value), comm.scan(value))
    for word in ("MAXLOC", "MINLOC"):
        op = getattr(MPI, word)
        pair = (rank % 2, rank)
        cases.add(f"reduce {word}{name}", comm.allreduce(pair, op), comm.scan(pair, op))
    texts = "abcdefgh"[rank]

    def joined(x: str, y: str) -> str:
        return f"({x}{y})"

    # The brackets show in which order; MPI says only that ranks are taken in theirs.
    for op in (operator.add, joined, MPI.SUM):
        found = [comm.allreduce(texts, op), comm.scan(texts, op), comm.exscan(texts, op)]
        found.append(comm.reduce(texts, op=op))
        plain = [text if text is None else text.replace("(", "").replace(")", "") for text in found]
        cases.add(f"reduce texts{name}", plain)
    cases.add(f"reduce lists{name}", comm.allreduce([rank], operator.concat))
    if n == 1:
        cases.error("REPLACE", comm.allreduce, 1, MPI.REPLACE)
        cases.error("NO_OP", comm.allreduce, 1, MPI.NO_OP)


def wrong() -> None:
    """Errors in calls with objects, in one process."""
    comm = MPI.COMM_SELF.Dup()
    cases.error("send to 5", comm.send, 1, 5)
    cases.error("send with tag -5", comm.send, 1, 0, -5)
    cases.error("recv from 5", comm.recv, source=5)
    cases.error("bcast from 5", comm.bcast, 1, 5)
    cases.error("gather to 5", comm.gather, 1, 5)
    cases.error("scatter from 5", comm.scatter, [1], 5)
    cases.error("reduce to 5", comm.reduce, 1, MPI.SUM, 5)
    status = MPI.Status()
    cases.add("PROC_NULL", comm.recv(source=MPI.PROC_NULL, status=status), status)
    comm.send(1, MPI.PROC_NULL)
    comm.isend(1, MPI.PROC_NULL).wait()
    got = comm.irecv(source=MPI.PROC_NULL).wait(status)
    cases.add("PROC_NULL", got, status, comm.sendrecv(1, MPI.PROC_NULL, source=MPI.PROC_NULL))
    cases.add("PROC_NULL", comm.probe(MPI.PROC_NULL, 0, status), status)
    cases.add("PROC_NULL", comm.mprobe(MPI.PROC_NULL).recv(status), status)


def pickling() -> None:
    pickler = MPI.Pickle()
    data = pickler.dumps({"one": [1, 2]})
    cases.add("Pickle", type(data), pickler.loads(data), pickler.PROTOCOL == MPI.pickle.PROTOCOL)
    array = np.arange(1 << 16)
    header, buffers = pickler.dumps_oob(array)
    cases.add("Pickle", len(header) < 1000, [len(buffer) for buffer in buffers])
    cases.add("Pickle", pickler.loads_oob(header, buffers).sum(), pickler.THRESHOLD)
    before = MPI.pickle.PROTOCOL
    MPI.pickle.PROTOCOL = 2
    cases.add("Pickle", MPI.pickle.dumps(5)[:2])
    MPI.pickle.PROTOCOL = before
    other = MPI.Pickle(dumps=lambda x: repr(x).encode(), loads=lambda x: eval(bytes(x)))
    cases.add("Pickle", other.dumps([1]), other.loads(b"(2, 3)"), other.PROTOCOL)
    for handle in (MPI.COMM_WORLD, MPI.INT, MPI.SUM, MPI.INFO_NULL, MPI.GROUP_EMPTY):
        cases.add("predefined", MPI.COMM_SELF.sendrecv(handle, 0, source=0) == handle)
    for handle in (MPI.IN_PLACE, MPI.BOTTOM, MPI.BUFFER_AUTOMATIC):
        cases.add("predefined", MPI.COMM_SELF.sendrecv(handle, 0, source=0) is handle)
    datatype = MPI.INT.Create_vector(2, 3, 4).Commit()
    copy = MPI.COMM_SELF.sendrecv(datatype, 0, source=0)
    cases.add("a datatype", copy.size, copy.extent, copy.combiner == MPI.COMBINER_VECTOR)
    info = MPI.Info.Create({"key": "value"})
    cases.add("an info", MPI.COMM_SELF.sendrecv(info, 0, source=0))
    status = MPI.Status()
    status.source = 5
    cases.add("a status", MPI.COMM_SELF.sendrecv(status, 0, source=0) == status)
    for thing in (MPI.COMM_SELF.Dup(), MPI.Grequest.Start(), MPI.Op.Create(lambda *args: None)):
        cases.error(f"pickle of {type(thing).__name__}", MPI.pickle.dumps, thing)


MPI.Attach_buffer(bytearray(1 << 24))
for name, comm in crowds():
    point_to_point(name, comm)
    collectives(name, comm)
    reductions(name, comm)
wrong()
pickling()
cases.done()
