"""Results of MPI's collectives between several sites do not depend on the order of the ranks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Endpoint, mpi
from tests.mpi.sites import LAYOUTS, Run, matrices, product

pytestmark = pytest.mark.tcp


def multiplied(ranks: Iterable[int], count: int) -> Any:
    return reduce(lambda a, b: a @ b % 1009, (matrices(rank, count) for rank in ranks))


class Checks:
    """The calls of one communicator, whose results are computed once more beside them.

    Attributes:
        failed: what was wrong.
    """

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.failed: list[str] = []

    def equal(self, what: str, got: Any, expected: Any) -> None:
        if not np.array_equal(got, expected):
            self.failed.append(f"{what} of {self.size}, rank {self.rank}: {got} is not {expected}")

    def all(self) -> list[str]:
        for count in (0, 1, 300, 20_000):  # the last are large messages
            self.reductions(count)
            self.in_order(min(count, 3000))
            self.blocks(count)
        self.varied()
        self.columns()
        self.objects()
        self.comm.Barrier()
        return self.failed

    def reductions(self, count: int) -> None:
        from mpi4py import MPI

        comm, rank, size = self.comm, self.rank, self.size
        values = [np.arange(count) * (one + 1) % 97 for one in range(size)]
        own, out = values[rank].copy(), np.full(count, -1)
        total, before = np.sum(values, axis=0), np.sum(values[:rank], axis=0)
        comm.Allreduce(own, out)
        self.equal("Allreduce", out, total)
        comm.Allreduce(MPI.IN_PLACE, out)
        self.equal("Allreduce in place", out, total * size)
        comm.Allreduce(own, out, MPI.MAX)
        self.equal("Allreduce, MAX", out, np.max(values, axis=0))
        request = comm.Allreduce_init(own, out)
        for _ in range(2):
            out[:] = -1
            request.Start()
            request.Wait()
            self.equal("Allreduce_init", out, total)
        request.Free()
        for root in range(size):
            out[:] = -1
            comm.Reduce(own, out, root=root)
            self.equal(f"Reduce to {root}", out, total if rank == root else np.full(count, -1))
            if rank == root:
                out[:] = own
                comm.Reduce(MPI.IN_PLACE, out, root=root)
                self.equal(f"Reduce to {root} in place", out, total)
            else:
                comm.Reduce(own, None, root=root)
        comm.Scan(own, out)
        self.equal("Scan", out, before + own)
        out[:] = own
        comm.Scan(MPI.IN_PLACE, out)
        self.equal("Scan in place", out, before + own)
        out[:] = -1
        comm.Exscan(own, out)
        self.equal("Exscan", out, before if rank else np.full(count, -1))
        parts = np.concatenate([own] * size)
        comm.Reduce_scatter_block(parts, out)
        self.equal("Reduce_scatter_block", out, total)
        counts = [3 * one % 4 for one in range(size)]
        everything = np.arange(sum(counts)) * (rank + 1)
        ours = np.empty(counts[rank], int)
        comm.Reduce_scatter(everything, ours, counts)
        first = sum(counts[:rank])
        expected = np.arange(first, first + counts[rank]) * sum(range(1, size + 1))
        self.equal("Reduce_scatter", ours, expected)

    def in_order(self, count: int) -> None:
        from mpi4py import MPI

        comm, rank, size = self.comm, self.rank, self.size
        kind = MPI.INT64_T.Create_contiguous(4).Commit()
        op = MPI.Op.Create(product, commute=False)
        own, out = matrices(rank, count), np.full((count, 2, 2), -1)
        total = multiplied(range(size), count)
        comm.Allreduce([own, count, kind], [out, count, kind], op)
        self.equal("Allreduce in order", out, total)
        for root in range(size):
            out[:] = -1
            comm.Reduce([own, count, kind], [out, count, kind], op, root)
            expected = total if rank == root else np.full((count, 2, 2), -1)
            self.equal(f"Reduce to {root} in order", out, expected)
        comm.Scan([own, count, kind], [out, count, kind], op)
        self.equal("Scan in order", out, multiplied(range(rank + 1), count))
        comm.Exscan([own, count, kind], [out, count, kind], op)
        if rank:
            self.equal("Exscan in order", out, multiplied(range(rank), count))
        op.Free()
        kind.Free()

    def blocks(self, count: int) -> None:
        from mpi4py import MPI

        comm, rank, size = self.comm, self.rank, self.size
        values = np.arange(size * count).reshape(size, count)
        own, out, each = values[rank].copy(), np.full(count, -1), np.full((size, count), -1)
        comm.Allgather(own, each)
        self.equal("Allgather", each, values)
        each[:] = -1
        each[rank] = own
        comm.Allgather(MPI.IN_PLACE, each)
        self.equal("Allgather in place", each, values)
        for root in range(size):
            is_root = rank == root
            each[:] = -1
            comm.Gather(own, each, root)
            self.equal(f"Gather to {root}", each, values if is_root else np.full_like(each, -1))
            if is_root:
                each[:] = -1
                each[rank] = own
            comm.Gather(MPI.IN_PLACE if is_root else own, each, root)
            self.equal(f"Gather to {root} in place", each, values if is_root else each)
            out[:] = -1
            comm.Scatter(values if is_root else None, out, root)
            self.equal(f"Scatter from {root}", out, own)
            out[:] = -1
            comm.Scatter(values if is_root else None, MPI.IN_PLACE if is_root else out, root)
            self.equal(f"Scatter from {root} in place", out, -np.ones(count) if is_root else own)
            out[:] = own
            comm.Bcast(out, root)
            self.equal(f"Bcast from {root}", out, values[root])
        out[:] = own
        requests = [comm.Igather(own, each, 0), comm.Ibcast(out, 0), comm.Ibarrier()]
        MPI.Request.Waitall(requests[::-1])
        self.equal("Ibcast", out, values[0])
        self.equal("Igather", each, values if rank == 0 else each)

    def varied(self) -> None:
        """Blocks of different lengths, the last first, and gaps between them."""
        comm, rank, size = self.comm, self.rank, self.size
        counts = [one * 5 % 7 for one in range(size)]
        places = [10 * (size - 1 - one) for one in range(size)]
        values = np.full(10 * size, -1)
        for one in range(size):
            values[places[one] : places[one] + counts[one]] = one * 100 + np.arange(counts[one])
        own, whole = (
            np.full(counts[rank], rank * 100) + np.arange(counts[rank]),
            np.full(10 * size, -1),
        )
        comm.Allgatherv(own, [whole, counts, places, None])
        self.equal("Allgatherv", whole, values)
        for root in range(size):
            is_root = rank == root
            whole[:] = -1
            comm.Gatherv(own, [whole, counts, places, None] if is_root else None, root)
            self.equal(f"Gatherv to {root}", whole, values if is_root else np.full_like(whole, -1))
            part = np.full(counts[rank], -1)
            comm.Scatterv([values, counts, places, None] if is_root else None, part, root)
            self.equal(f"Scatterv from {root}", part, own)

    def columns(self) -> None:
        """Datatypes that lie between each other: columns of a matrix, one of each process."""
        from mpi4py import MPI

        comm, rank, size = self.comm, self.rank, self.size
        column = MPI.INT64_T.Create_vector(3, 1, size).Create_resized(0, 8).Commit()
        values = np.arange(3 * size).reshape(3, size)
        own, matrix = values[:, rank].copy(), np.full((3, size), -1)
        comm.Allgather([own, 3, MPI.INT64_T], [matrix, 1, column])
        self.equal("Allgather of columns", matrix, values)
        for root in range(size):
            is_root = rank == root
            matrix[:] = -1
            comm.Gather([own, 3, MPI.INT64_T], [matrix, 1, column] if is_root else None, root)
            self.equal("Gather of columns", matrix, values if is_root else np.full_like(matrix, -1))
            out = np.full(3, -1)
            comm.Scatter([values, 1, column] if is_root else None, [out, 3, MPI.INT64_T], root)
            self.equal("Scatter of columns", out, own)
            matrix[:] = rank
            comm.Bcast([matrix, 1, column], root)
            self.equal("Bcast of a column", matrix[:, 0], [root] * 3)
            self.equal("Bcast of a column, the others", matrix[:, 1:], np.full((3, size - 1), rank))
        column.Free()

    def objects(self) -> None:
        comm, rank, size = self.comm, self.rank, self.size
        values = [(one, "x" * 1000 * one) for one in range(size)]
        for root in range(size):
            self.equal("bcast", comm.bcast(values if rank == root else None, root) == values, True)
            self.equal("scatter", comm.scatter(values, root) == values[rank], True)
            gathered = comm.gather(values[rank], root)
            self.equal("gather", gathered == (values if rank == root else None), True)
        self.equal("allgather", comm.allgather(values[rank]) == values, True)
        self.equal("alltoall", comm.alltoall([(rank, one) for one in range(size)])
                   == [(one, rank) for one in range(size)], True)  # fmt: skip


def results(sfm: Endpoint) -> list[str]:
    """Calls of the world, of its processes backwards, and of some of them."""
    mpi.use(sfm)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms = [world, world.Split(0, -world.rank), world.Split(world.rank % 3, world.rank)]
    failed = [one for comm in comms for one in Checks(comm).all()]
    for comm in comms[1:]:
        comm.Free()
    return failed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_right(layout: str, run_at: Run) -> None:
    assert list(chain(*run_at(layout, results))) == []
