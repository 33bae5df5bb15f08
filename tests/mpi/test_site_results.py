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

pytestmark = pytest.mark.zmq


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

    def equal(self, call: str, got: Any, expected: Any) -> None:
        if not np.array_equal(got, expected):
            self.failed.append(f"{call} of {self.size}, rank {self.rank}: {got} is not {expected}")

    def run(self) -> list[str]:
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
        values = [np.arange(count) * (peer + 1) % 97 for peer in range(size)]
        data, out = values[rank].copy(), np.full(count, -1)
        total, before = np.sum(values, axis=0), np.sum(values[:rank], axis=0)
        comm.Allreduce(data, out)
        self.equal("Allreduce", out, total)
        comm.Allreduce(MPI.IN_PLACE, out)
        self.equal("Allreduce in place", out, total * size)
        comm.Allreduce(data, out, MPI.MAX)
        self.equal("Allreduce, MAX", out, np.max(values, axis=0))
        request = comm.Allreduce_init(data, out)
        for _ in range(2):
            out[:] = -1
            request.Start()
            request.Wait()
            self.equal("Allreduce_init", out, total)
        request.Free()
        for root in range(size):
            out[:] = -1
            comm.Reduce(data, out, root=root)
            self.equal(f"Reduce to {root}", out, total if rank == root else np.full(count, -1))
            if rank == root:
                out[:] = data
                comm.Reduce(MPI.IN_PLACE, out, root=root)
                self.equal(f"Reduce to {root} in place", out, total)
            else:
                comm.Reduce(data, None, root=root)
        comm.Scan(data, out)
        self.equal("Scan", out, before + data)
        out[:] = data
        comm.Scan(MPI.IN_PLACE, out)
        self.equal("Scan in place", out, before + data)
        out[:] = -1
        comm.Exscan(data, out)
        self.equal("Exscan", out, before if rank else np.full(count, -1))
        parts = np.concatenate([data] * size)
        comm.Reduce_scatter_block(parts, out)
        self.equal("Reduce_scatter_block", out, total)
        counts = [3 * peer % 4 for peer in range(size)]
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
        data, out = matrices(rank, count), np.full((count, 2, 2), -1)
        total = multiplied(range(size), count)
        comm.Allreduce([data, count, kind], [out, count, kind], op)
        self.equal("Allreduce in order", out, total)
        for root in range(size):
            out[:] = -1
            comm.Reduce([data, count, kind], [out, count, kind], op, root)
            expected = total if rank == root else np.full((count, 2, 2), -1)
            self.equal(f"Reduce to {root} in order", out, expected)
        comm.Scan([data, count, kind], [out, count, kind], op)
        self.equal("Scan in order", out, multiplied(range(rank + 1), count))
        comm.Exscan([data, count, kind], [out, count, kind], op)
        if rank:
            self.equal("Exscan in order", out, multiplied(range(rank), count))
        op.Free()
        kind.Free()

    def blocks(self, count: int) -> None:
        from mpi4py import MPI

        comm, rank, size = self.comm, self.rank, self.size
        values = np.arange(size * count).reshape(size, count)
        data, out, each = values[rank].copy(), np.full(count, -1), np.full((size, count), -1)
        comm.Allgather(data, each)
        self.equal("Allgather", each, values)
        each[:] = -1
        each[rank] = data
        comm.Allgather(MPI.IN_PLACE, each)
        self.equal("Allgather in place", each, values)
        for root in range(size):
            is_root = rank == root
            each[:] = -1
            comm.Gather(data, each, root)
            self.equal(f"Gather to {root}", each, values if is_root else np.full_like(each, -1))
            if is_root:
                each[:] = -1
                each[rank] = data
            comm.Gather(MPI.IN_PLACE if is_root else data, each, root)
            self.equal(f"Gather to {root} in place", each, values if is_root else each)
            out[:] = -1
            comm.Scatter(values if is_root else None, out, root)
            self.equal(f"Scatter from {root}", out, data)
            out[:] = -1
            comm.Scatter(values if is_root else None, MPI.IN_PLACE if is_root else out, root)
            self.equal(f"Scatter from {root} in place", out, -np.ones(count) if is_root else data)
            out[:] = data
            comm.Bcast(out, root)
            self.equal(f"Bcast from {root}", out, values[root])
        out[:] = data
        requests = [comm.Igather(data, each, 0), comm.Ibcast(out, 0), comm.Ibarrier()]
        MPI.Request.Waitall(requests[::-1])
        self.equal("Ibcast", out, values[0])
        self.equal("Igather", each, values if rank == 0 else each)

    def varied(self) -> None:
        """Blocks of different lengths, the last first, and gaps between them."""
        comm, rank, size = self.comm, self.rank, self.size
        counts = [nth * 5 % 7 for nth in range(size)]
        places = [10 * (size - 1 - nth) for nth in range(size)]
        values = np.full(10 * size, -1)
        for nth in range(size):
            values[places[nth] : places[nth] + counts[nth]] = nth * 100 + np.arange(counts[nth])
        data, every = rank * 100 + np.arange(counts[rank]), np.full(10 * size, -1)
        comm.Allgatherv(data, [every, counts, places, None])
        self.equal("Allgatherv", every, values)
        for root in range(size):
            is_root = rank == root
            every[:] = -1
            comm.Gatherv(data, [every, counts, places, None] if is_root else None, root)
            self.equal(f"Gatherv to {root}", every, values if is_root else np.full_like(every, -1))
            ours = np.full(counts[rank], -1)
            comm.Scatterv([values, counts, places, None] if is_root else None, ours, root)
            self.equal(f"Scatterv from {root}", ours, data)

    def columns(self) -> None:
        """Datatypes that lie between each other: columns of a matrix, one of each process."""
        from mpi4py import MPI

        comm, rank, size = self.comm, self.rank, self.size
        column = MPI.INT64_T.Create_vector(3, 1, size).Create_resized(0, 8).Commit()
        values = np.arange(3 * size).reshape(3, size)
        data, matrix = values[:, rank].copy(), np.full((3, size), -1)
        comm.Allgather([data, 3, MPI.INT64_T], [matrix, 1, column])
        self.equal("Allgather of columns", matrix, values)
        for root in range(size):
            is_root = rank == root
            matrix[:] = -1
            comm.Gather([data, 3, MPI.INT64_T], [matrix, 1, column] if is_root else None, root)
            self.equal("Gather of columns", matrix, values if is_root else np.full_like(matrix, -1))
            out = np.full(3, -1)
            comm.Scatter([values, 1, column] if is_root else None, [out, 3, MPI.INT64_T], root)
            self.equal("Scatter of columns", out, data)
            matrix[:] = rank
            comm.Bcast([matrix, 1, column], root)
            self.equal("Bcast of a column", matrix[:, 0], [root] * 3)
            self.equal("Bcast of a column, the others", matrix[:, 1:], np.full((3, size - 1), rank))
        column.Free()

    def objects(self) -> None:
        comm, rank, size = self.comm, self.rank, self.size
        values = [(peer, "x" * 1000 * peer) for peer in range(size)]
        for root in range(size):
            self.equal("bcast", comm.bcast(values if rank == root else None, root) == values, True)
            self.equal("scatter", comm.scatter(values, root) == values[rank], True)
            gathered = comm.gather(values[rank], root)
            self.equal("gather", gathered == (values if rank == root else None), True)
        self.equal("allgather", comm.allgather(values[rank]) == values, True)
        self.equal("alltoall", comm.alltoall([(rank, peer) for peer in range(size)])
                   == [(peer, rank) for peer in range(size)], True)  # fmt: skip


def results(sfm: Endpoint) -> list[str]:
    """Calls of the world, of its processes backwards, and of some of them."""
    mpi.use(sfm)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms = [world, world.Split(0, -world.rank), world.Split(world.rank % 3, world.rank)]
    failed = [failure for comm in comms for failure in Checks(comm).run()]
    for comm in comms[1:]:
        comm.Free()
    return failed


@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_are_right(layout: str, run_at: Run) -> None:
    assert list(chain(*run_at(layout, results))) == []
