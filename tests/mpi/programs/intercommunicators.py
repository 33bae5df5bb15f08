"""Intercommunicators: made, merged, split; messages and every collective across them."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import COMPARISONS, WAYS, Cases, blank, call, named, numbers
from mpi4py import MPI

cases = Cases()


def halves(first: int) -> tuple[MPI.Intracomm, MPI.Intercomm, bool]:
    """COMM_WORLD in two: the first ranks, and the others. Whether this rank is in the first."""
    world = MPI.COMM_WORLD
    left = world.rank < first
    local = world.Split(int(left))
    inter = local.Create_intercomm(0, world, first if left else 0, 7)
    return local, inter, left


def management(name: str, local: MPI.Intracomm, inter: MPI.Intercomm, left: bool) -> None:
    cases.add(f"made{name}", inter, inter.Is_inter(), inter.is_intra, inter.remote_size)
    cases.add(f"made{name}", inter.Get_group(), inter.Get_remote_group(), inter.remote_group)
    cases.add(f"made{name}", named(inter.Compare(inter), *COMPARISONS), inter.Get_name())
    for high in (left, not left):
        merged = inter.Merge(high)
        cases.add(f"merged{name}", merged, merged.allgather(MPI.COMM_WORLD.rank))
        merged.Free()
    copy = inter.Dup()
    cases.add(f"Dup{name}", copy, named(copy.Compare(inter), *COMPARISONS))
    copy.Free()
    copy, request = inter.Idup()
    request.Wait()
    cases.add(f"Idup{name}", copy, copy.allgather(local.rank))
    copy.Free()
    made = inter.Split(inter.rank % 2, 0)
    cases.add(f"Split{name}", made)
    if made != MPI.COMM_NULL:
        cases.add(f"Split{name}", made.allgather(MPI.COMM_WORLD.rank))
        made.Free()
    made = inter.Create(inter.Get_group().Incl([0]))
    cases.add(f"Create{name}", made)
    if made != MPI.COMM_NULL:
        made.Free()
    made = MPI.Intercomm.Create_from_groups(
        inter.Get_group(), 0, inter.Get_remote_group(), 0, "a tag"
    )
    cases.add(f"Create_from_groups{name}", made, made.allgather(local.rank))
    made.Free()


def messages(name: str, inter: MPI.Intercomm) -> None:
    n, peer = inter.remote_size, inter.rank % inter.remote_size
    status = MPI.Status()
    requests = [inter.isend((inter.rank, "to", dest), dest, 3) for dest in range(n)]
    cases.add(f"recv{name}", [inter.recv(source=src, tag=3, status=status) for src in range(n)])
    cases.add(f"recv{name}", status.source)
    MPI.Request.waitall(requests)
    data = [numbers("i", 4, 10 * inter.rank + dest) for dest in range(n)]
    memory = blank("i", 4)
    requests = [inter.Isend(values, dest) for dest, values in enumerate(data)]
    for src in range(n):
        inter.Probe(src, 0, status)
        inter.Recv(memory, src, 0, status)
        cases.add(f"Recv{name}", memory, status)
    MPI.Request.Waitall(requests)
    if inter.rank < min(n, inter.size):
        cases.add(f"sendrecv{name}", inter.sendrecv("x", peer, source=peer))
        inter.Sendrecv(np.array([inter.rank]), peer, 0, memory, peer)
        cases.add(f"Sendrecv{name}", memory)
    inter.Send(b"", MPI.PROC_NULL)
    cases.error(f"rank{name}", inter.Isend, b"", n)


def collectives(name: str, inter: MPI.Intercomm, left: bool, way: str) -> None:
    size, n, me = inter.size, inter.remote_size, inter.rank
    block = numbers("i", 3, 10 * me + left)

    def add(word: str, *memories: Any) -> None:
        cases.add(f"{word} {way}{name}", *memories)

    call(inter, way, "Barrier")
    for root_left in (True, False):  # the root is in this group, then in the other
        last = (size if root_left == left else n) - 1
        root = (MPI.ROOT if me == last else MPI.PROC_NULL) if root_left == left else last
        here, there = root == MPI.ROOT, root_left != left
        comm = inter.Dup()  # MPICH 5.0 hangs in one that has had non-blocking calls with a root
        memory = block.copy() if here else blank("i", 3)
        call(comm, way, "Bcast", memory, root)
        if way == "":  # MPICH 5.0 does not write to all in the other ways
            add("Bcast", memory if there else None)
        many = blank("i", 3 * n) if here else None
        call(comm, way, "Gather", block if there else None, many, root)
        add("Gather", many)
        many, memory = numbers("i", 3 * n, 5) if here else None, blank("i", 3)
        call(comm, way, "Scatter", many, memory if there else None, root)
        add("Scatter", memory)
        counts = [rank % 3 + 1 for rank in range(n if here else size)]
        many = blank("i", sum(counts)) if here else None
        data = numbers("i", me % 3 + 1, me)
        call(comm, way, "Gatherv", data if there else None, [many, counts] if here else None, root)
        add("Gatherv", many)
        many, memory = numbers("i", sum(counts)) if here else None, blank("i", me % 3 + 1)
        layout = [many, counts] if here else None
        call(comm, way, "Scatterv", layout, memory if there else None, root)
        add("Scatterv", memory)
        memory = blank("i", 3) if here else None
        call(comm, way, "Reduce", block if there else None, memory, MPI.SUM, root)
        add("Reduce", memory)
        comm.Free()
    memory = blank("i", 3 * n)
    call(inter, way, "Allgather", block, memory)
    add("Allgather", memory)
    counts = [rank % 3 + 1 for rank in range(n)]
    memory = blank("i", sum(counts))
    call(inter, way, "Allgatherv", numbers("i", me % 3 + 1, me), [memory, counts])
    add("Allgatherv", memory)
    memory = blank("i", 2 * n)
    call(inter, way, "Alltoall", numbers("i", 2 * n, me), memory)
    add("Alltoall", memory)
    call(inter, way, "Alltoallv", [numbers("i", 2 * n, me), [1] * n], [memory, [1] * n])
    add("Alltoallv", memory)
    places, kinds = [8 * rank for rank in range(n)], [MPI.INT] * n
    sent = [numbers("i", 2 * n, me), [1] * n, places, kinds]
    call(inter, way, "Alltoallw", sent, [memory, [1] * n, places, kinds])
    add("Alltoallw", memory)
    memory = blank("i", 3)
    call(inter, way, "Allreduce", block, memory, MPI.SUM)
    add("Allreduce", memory)
    total = 2 * size * n
    memory = blank("i", total // size)
    call(inter, way, "Reduce_scatter_block", numbers("i", total, me), memory, MPI.MAX)
    add("Reduce_scatter_block", memory)
    call(inter, way, "Reduce_scatter", numbers("i", total, me), memory, [2 * n] * size, MPI.MAX)
    add("Reduce_scatter", memory)


def objects(name: str, inter: MPI.Intercomm, left: bool) -> None:
    size, n, me = inter.size, inter.remote_size, inter.rank
    inter.barrier()
    for root_left in (True, False):
        last = (size if root_left == left else n) - 1
        root = (MPI.ROOT if me == last else MPI.PROC_NULL) if root_left == left else last
        here = root == MPI.ROOT
        cases.add(f"bcast{name}", inter.bcast({"from": left} if here else None, root))
        cases.add(f"gather{name}", inter.gather((me, left), root))
        given = [("for", rank) for rank in range(n)] if here else None
        cases.add(f"scatter{name}", inter.scatter(given, root))
        cases.add(f"reduce{name}", inter.reduce(me + 10 * left, MPI.SUM, root))
    cases.add(f"allgather{name}", inter.allgather((me, left)))
    cases.add(f"alltoall{name}", inter.alltoall([(me, rank) for rank in range(n)]))
    cases.add(f"allreduce{name}", inter.allreduce([me], MPI.SUM))


for first in range(1, MPI.COMM_WORLD.size):
    local, inter, left = halves(first)
    name = f" {first}"
    management(name, local, inter, left)
    messages(name, inter)
    for way in WAYS:
        collectives(name, inter, left, way)
    objects(name, inter, left)
    inter.Free()
    cases.add(f"freed{name}", inter)
    local.Free()
cases.done()
