"""Collectives of buffers: every one, blocking, non-blocking and persistent, in and out of place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from cases import CODES, LARGE, SIZES, WAYS, Cases, blank, call, crowds, numbers
from mpi4py import MPI

cases = Cases()


def roots(comm: MPI.Intracomm) -> Iterator[tuple[int, bool]]:
    for root in {0, comm.size - 1}:
        yield root, comm.rank == root


def blocks(name: str, comm: MPI.Intracomm, way: str, code: str, size: int) -> None:
    """Calls that move blocks of equal size."""
    rank, n = comm.rank, comm.size

    def add(word: str, *memories: Any) -> None:
        cases.add(f"{word} {way}{name}", *memories)

    def block() -> np.ndarray:
        return numbers(code, size, 10 * rank)

    call(comm, way, "Barrier")
    for root, here in roots(comm):
        memory = block() if here else blank(code, size)
        call(comm, way, "Bcast", memory, root)
        add("Bcast", memory)

        many = blank(code, n * size) if here else None
        call(comm, way, "Gather", block(), many, root)
        add("Gather", many)
        if here:
            many[:] = 0
            many[rank * size : (rank + 1) * size] = block()
            call(comm, way, "Gather", MPI.IN_PLACE, many, root)
        else:
            call(comm, way, "Gather", block(), None, root)
        add("Gather in place", many)

        many, memory = numbers(code, n * size, 3) if here else None, blank(code, size)
        call(comm, way, "Scatter", many, memory, root)
        add("Scatter", memory)
        memory = blank(code, size)
        call(comm, way, "Scatter", many, MPI.IN_PLACE if here else memory, root)
        add("Scatter in place", many if here else memory)

    many = blank(code, n * size)
    call(comm, way, "Allgather", block(), many)
    add("Allgather", many)
    many = np.concatenate([block() if source == rank else blank(code, size) for source in range(n)])
    call(comm, way, "Allgather", MPI.IN_PLACE, many)
    add("Allgather in place", many)

    many = blank(code, n * size)
    call(comm, way, "Alltoall", numbers(code, n * size, rank), many)
    add("Alltoall", many)
    many = numbers(code, n * size, rank)
    call(comm, way, "Alltoall", MPI.IN_PLACE, many)
    add("Alltoall in place", many)


def vectors(name: str, comm: MPI.Intracomm, way: str) -> None:
    """Calls that move blocks of different sizes, with gaps between them."""
    rank, n = comm.rank, comm.size

    def add(word: str, *memories: Any) -> None:
        cases.add(f"{word} {way}{name}", *memories)

    counts = [peer % 3 + 1 for peer in range(n)]
    gaps = [4 * peer + 1 for peer in range(n)]
    here_only: list[tuple[str, Any]] = [
        ("counts", (counts, None)),
        ("counts and displacements", (counts, gaps)),
        ("arrays", (np.array(counts), np.array(gaps))),
        ("backwards", (counts, gaps[::-1])),
    ]
    sent = numbers("i", counts[rank], 10 * rank)
    for (case, layout), (root, here) in product(here_only, roots(comm)):
        many = blank("i", 4 * n + 4)
        call(comm, way, "Gatherv", sent, [many, layout, MPI.INT] if here else None, root)
        add(f"Gatherv, {case}", many)
        many, memory = numbers("i", 4 * n + 4), blank("i", counts[rank])
        call(comm, way, "Scatterv", [many, layout, MPI.INT] if here else None, memory, root)
        add(f"Scatterv, {case}", memory)
    for case, layout in here_only:
        many = blank("i", 4 * n + 4)
        call(comm, way, "Allgatherv", sent, [many, layout, "i"])
        add(f"Allgatherv, {case}", many)
    many = blank("i", 4 * n + 4)
    many[gaps[rank] : gaps[rank] + counts[rank]] = sent
    call(comm, way, "Allgatherv", MPI.IN_PLACE, [many, counts, gaps, MPI.INT])
    add("Allgatherv in place", many)

    to = [(rank + peer) % 3 for peer in range(n)]  # rank sends to a peer as many as it gets from it
    places = [3 * peer for peer in range(n)]
    data, many = numbers("d", 3 * n, rank), blank("d", 3 * n)
    call(comm, way, "Alltoallv", [data, (to, places)], [many, (to, places), MPI.DOUBLE])
    add("Alltoallv", many)
    many = numbers("d", 3 * n, rank)
    call(comm, way, "Alltoallv", MPI.IN_PLACE, [many, (to, places), MPI.DOUBLE])
    add("Alltoallv in place", many)

    kinds = [MPI.SHORT if (rank + peer) % 2 else MPI.DOUBLE for peer in range(n)]
    offsets = [24 * peer for peer in range(n)]
    data = np.concatenate([
        numbers(kind.tocode(), 24 // kind.size, rank + peer).view(np.uint8)
        for peer, kind in enumerate(kinds)
    ])  # fmt: skip
    many = blank("B", 24 * n)
    call(comm, way, "Alltoallw", [data, to, offsets, kinds], [many, to, offsets, kinds])
    add("Alltoallw", many)
    call(comm, way, "Alltoallw", MPI.IN_PLACE, [many, (to, offsets), kinds])
    add("Alltoallw in place", many)


def layouts(name: str, comm: MPI.Intracomm, way: str) -> None:
    """Derived types: the columns of a matrix are gathered as rows, and so on."""
    rank, n = comm.rank, comm.size
    column = MPI.DOUBLE.Create_vector(4, 1, n)
    one_column = column.Create_resized(0, 8).Commit()
    column.Commit()
    matrix = np.arange(4.0 * n).reshape(4, n) if rank == 0 else None
    memory = blank("d", 4)
    call(comm, way, "Scatter", [matrix, 1, one_column] if rank == 0 else None, memory, 0)
    cases.add(f"columns {way}{name}", memory)
    memory += rank
    call(comm, way, "Gather", memory, [matrix, 1, one_column] if rank == 0 else None, 0)
    cases.add(f"columns {way}{name}", matrix)
    every = blank("d", 4 * n).reshape(4, n)
    call(comm, way, "Allgather", [memory, 4, MPI.DOUBLE], [every, 1, one_column])
    cases.add(f"columns {way}{name}", every)
    square = numbers("d", 16, rank).reshape(4, 4)
    if rank:
        square[:] = 0
    diagonal = MPI.DOUBLE.Create_vector(4, 1, 5).Commit()
    call(comm, way, "Bcast", [square, 1, diagonal], 0)
    cases.add(f"diagonal {way}{name}", square)
    for datatype in (column, one_column, diagonal):
        datatype.Free()


def shapes(comm: MPI.Intracomm) -> None:
    """Counts that are inferred or given, in arrays of one and two dimensions."""
    n = comm.size
    matrix = blank("i", 3 * n).reshape(n, 3)
    comm.Allgather(numbers("i", 3, comm.rank), matrix)
    cases.add("into rows", matrix)
    comm.Allgather([numbers("i", 4, comm.rank), 2, MPI.INT], [matrix, 2, MPI.INT])
    cases.add("with counts", matrix)
    for case, send, receive in (
        ("indivisible", numbers("i", 3), blank("i", 3 * n + 1)),
        ("read-only", numbers("i", 3), bytes(12 * n)),
        ("nothing", None, blank("i", 3 * n)),
        ("no buffer", 5, blank("i", 3 * n)),
    ):
        if n > 1:
            cases.error(f"Allgather {case}", comm.Allgather, send, receive)


for name, comm in crowds():
    for way in WAYS:
        for size in SIZES:
            blocks(name, comm, way, "i", size)
        vectors(name, comm, way)
        layouts(name, comm, way)
for way, code in product(WAYS, CODES):
    blocks(f" {code}", MPI.COMM_WORLD, way, code, 3)
for way in WAYS:
    blocks(" large", MPI.COMM_WORLD, way, "d", LARGE // 8)
shapes(MPI.COMM_WORLD)
cases.done()
