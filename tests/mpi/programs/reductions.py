"""Reductions of buffers: every call, operation and type; own operations; pairs; in place."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from cases import CODES, LARGE, WAYS, Cases, blank, call, crowds, numbers, raised
from mpi4py import MPI

cases = Cases()
WHOLE, BITS = "bhilqBHILQ", "?bhilqBHILQ"
OPERATIONS = {
    "SUM": CODES.replace("?", ""),
    "PROD": CODES.replace("?", ""),
    "MAX": WHOLE + "fdg",
    "MIN": WHOLE + "fdg",
    "LAND": BITS,
    "LOR": BITS,
    "LXOR": BITS,
    "BAND": WHOLE,
    "BOR": WHOLE,
    "BXOR": WHOLE,
}


def every_call(case: str, comm: MPI.Intracomm, way: str, op: MPI.Op, data: Any) -> None:
    """Reduce in all ways what each rank gives; ``data`` makes the numbers of a rank."""
    rank, n = comm.rank, comm.size
    size = len(data(0))

    def add(word: str, *memories: Any) -> None:
        cases.add(f"{word}{case}", *memories)

    def empty(count: int = size) -> np.ndarray:
        return np.zeros(count, data(0).dtype)

    memory = empty()
    call(comm, way, "Allreduce", data(rank), memory, op)
    add("Allreduce", memory)
    memory = data(rank)
    call(comm, way, "Allreduce", MPI.IN_PLACE, memory, op)
    add("Allreduce", memory)
    for root in {0, n - 1}:
        here = rank == root
        memory = empty() if here else None
        call(comm, way, "Reduce", data(rank), memory, op, root)
        add("Reduce", memory)
        memory = data(rank)
        send, receive = (MPI.IN_PLACE, memory) if here else (memory, None)
        call(comm, way, "Reduce", send, receive, op, root)
        add("Reduce", memory if here else None)
    for word in ("Scan", "Exscan"):
        memory = empty()
        call(comm, way, word, data(rank), memory, op)
        add(word, memory if rank or word == "Scan" else None)
        memory = data(rank)
        call(comm, way, word, MPI.IN_PLACE, memory, op)
        add(word, memory if rank or word == "Scan" else None)
    many = np.concatenate([data(rank + peer) for peer in range(n)])
    memory = empty()
    call(comm, way, "Reduce_scatter_block", many, memory, op)
    add("Reduce_scatter_block", memory)
    memory = many.copy()
    call(comm, way, "Reduce_scatter_block", MPI.IN_PLACE, memory, op)
    add("Reduce_scatter_block", memory[:size])
    counts = [0] * n
    counts[0], counts[-1] = size * n // 2, size * n - size * n // 2
    if n == 1:
        counts = [size]
    memory = empty(counts[rank])
    call(comm, way, "Reduce_scatter", many, memory, counts, op)
    add("Reduce_scatter", memory)
    memory = many.copy()
    call(comm, way, "Reduce_scatter", MPI.IN_PLACE, memory, counts, op)
    add("Reduce_scatter", memory[: counts[rank]])
    memory = empty()
    call(comm, way, "Reduce_scatter", many, memory, None, op)
    add("Reduce_scatter", memory)


def every_type(word: str, code: str) -> None:
    """An operation on elements of a type: in the calls that have an algorithm of their own."""
    comm, op = MPI.COMM_WORLD, getattr(MPI, word)
    memory = np.zeros(4, code)
    comm.Allreduce(numbers(code, 4, comm.rank), memory, op)
    cases.add(f"{word} {code}", memory)
    comm.Reduce(numbers(code, 4, comm.rank), memory, op, comm.size - 1)
    cases.add(f"{word} {code}", memory if comm.rank == comm.size - 1 else None)
    comm.Scan(numbers(code, 4, comm.rank), memory, op)
    cases.add(f"{word} {code}", memory)
    comm.Reduce_scatter_block(numbers(code, 4 * comm.size, comm.rank), memory, op)
    cases.add(f"{word} {code}", memory)


def own_operations(name: str, comm: MPI.Intracomm, way: str) -> None:
    """Operations written in Python. Those that do not commute take the ranks in their order."""
    seen: set[str] = set()

    def then(first: MPI.buffer, second: MPI.buffer, datatype: MPI.Datatype) -> None:
        seen.add(datatype.Get_name())
        x, y = np.frombuffer(first, "i"), np.frombuffer(second, "i")
        y[:] = 10 * x + y % 10  # of digits x, y: their number

    def larger(first: MPI.buffer, second: MPI.buffer, datatype: MPI.Datatype) -> None:
        x, y = np.frombuffer(first, "i"), np.frombuffer(second, "i")
        np.maximum(x, y, out=y)

    def matrices(first: MPI.buffer, second: MPI.buffer, datatype: MPI.Datatype) -> None:
        x = np.frombuffer(first, "q").reshape(-1, 2, 2)
        y = np.frombuffer(second, "q").reshape(-1, 2, 2)
        y[:] = x @ y

    rank, n = comm.rank, comm.size
    op = MPI.Op.Create(larger, commute=True)
    every_call(f" own commuting {way}{name}", comm, way, op, lambda nth: numbers("i", 4, nth))
    cases.add(f"own{name}", op, op.is_commutative, op.is_predefined)
    op.Free()
    op = MPI.Op.Create(then)
    digit, memory = np.full(3, rank + 1, "i"), blank("i", 3)
    call(comm, way, "Scan", digit, memory, op)
    cases.add(f"Scan of digits{name}", memory % 10)
    op.Free()
    op = MPI.Op.Create(matrices)
    datatype = MPI.INT64_T.Create_contiguous(4).Commit()
    sent = np.array([[[1, rank], [0, 1]], [[rank, 1], [1, 0]]])
    received = np.empty_like(sent)
    call(comm, way, "Allreduce", [sent, 2, datatype], [received, 2, datatype], op)
    cases.add(f"product of matrices{name}", received)
    call(comm, way, "Scan", [sent, 2, datatype], [received, 2, datatype], op)
    cases.add(f"product of matrices{name}", received)
    call(comm, way, "Reduce", [sent, 2, datatype], [received, 2, datatype], op, n - 1)
    cases.add(f"product of matrices{name}", received if rank == n - 1 else None)
    datatype.Free()
    op.Free()


PAIRS = ("SHORT_INT", "INT_INT", "LONG_INT", "FLOAT_INT", "DOUBLE_INT", "LONG_DOUBLE_INT")


def pairs(name: str, comm: MPI.Intracomm) -> None:
    """The largest and smallest, and where they are."""
    for kind, op in product(PAIRS, (MPI.MAXLOC, MPI.MINLOC)):
        datatype = getattr(MPI, kind)
        value = {"SHORT": "h", "INT": "i", "LONG": "l", "FLOAT": "f", "DOUBLE": "d"}.get(
            kind.removesuffix("_INT"), "g"
        )
        pair = np.dtype([("value", value), ("where", "i")], align=True)
        send, receive = np.zeros(3, pair), np.zeros(3, pair)
        send["value"] = [comm.rank % 3, -comm.rank, 5]
        send["where"] = comm.rank
        comm.Allreduce([send, datatype], [receive, datatype], op)
        cases.add(f"pairs {kind}{name}", receive["value"], receive["where"])
        comm.Scan([send, datatype], [receive, datatype], op)
        cases.add(f"pairs {kind}{name}", receive["value"], receive["where"])


def local() -> None:
    for word, codes in OPERATIONS.items():
        op = getattr(MPI, word)
        for code in codes:
            memory = numbers(code, 5, 1)
            op.Reduce_local(numbers(code, 5), memory)
            cases.add(f"Reduce_local {word}", memory)
        for code in set(CODES) - set(codes) - set("?"):
            memory = numbers(code, 5, 1)
            case = f"Reduce_local {word} {code}"
            cases.error(case, op.Reduce_local, numbers(code, 5), memory)
        cases.add(f"op {word}", op.Is_commutative(), op.is_predefined)
    memory = numbers("i", 3)
    for op in (MPI.REPLACE, MPI.NO_OP):  # for windows alone
        cases.error("Reduce_local REPLACE", op.Reduce_local, numbers("i", 3, 2), memory)
    for x, y in ((3, 5), (0, 2), (True, False), (2, 2)):
        values = [getattr(MPI, word)(x, y) for word in (*OPERATIONS, "REPLACE", "NO_OP")]
        cases.add("called", values, MPI.MAXLOC((x, 1), (y, 0)), MPI.MINLOC((x, 1), (y, 0)))
    cases.error("bad op", MPI.COMM_SELF.Allreduce, numbers("i", 1), blank("i", 1), MPI.OP_NULL)
    cases.error("MAXLOC of i", MPI.COMM_SELF.Allreduce, numbers("i", 1), blank("i", 1), MPI.MAXLOC)
    cases.add("null", MPI.OP_NULL, MPI.Op() == MPI.OP_NULL, raised(MPI.SUM.Free))


for name, comm in crowds():
    for way in WAYS:
        for size in (0, 1, 7):
            case = f" {way}{name}"
            every_call(case, comm, way, MPI.SUM, lambda nth, size=size: numbers("i", size, nth))
        own_operations(name, comm, way)
    pairs(name, comm)
for word, codes in OPERATIONS.items():
    for code in codes:
        every_type(word, code)
for way in WAYS:
    large = lambda nth: numbers("d", LARGE // 8, nth)  # noqa: E731
    every_call(f" large {way}", MPI.COMM_WORLD, way, MPI.SUM, large)
local()
cases.done()
