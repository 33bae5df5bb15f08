"""Collective calls that are prepared once, and started again and again."""

from __future__ import annotations

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint


@pytest.mark.parametrize("n", [1, 3])
def test_each_start_makes_the_call(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        counts = list(range(1, size + 1))
        root = size - 1
        at_root = rank == root
        mine, bcast = np.zeros(size), np.zeros(size)
        many, part, apart = np.zeros(sum(counts)), np.zeros(counts[rank]), np.zeros(counts[rank])
        rows = {name: np.zeros((size, size)) for name in ("gather", "allgather")}
        ragged = {name: np.zeros(sum(counts)) for name in ("gatherv", "allgatherv")}
        cols = {name: np.zeros(size) for name in ("alltoall", "alltoallv", "alltoallw")}
        sums = {name: np.zeros(size) for name in ("reduce", "allreduce", "scan", "exscan")}
        one, block = np.zeros(1), np.zeros(1)
        ones, places = [1] * size, [8 * one for one in range(size)]
        wide = [ones, places, [MPI.DOUBLE] * size]
        width = counts[rank]
        requests = [
            comm.Barrier_init(),
            comm.Bcast_init(bcast, root),
            comm.Gather_init(mine, rows["gather"] if at_root else None, root),
            comm.Gatherv_init(many[:width], [ragged["gatherv"], counts] if at_root else None, root),
            comm.Scatter_init(mine if at_root else None, one, root),
            comm.Scatterv_init([many, counts] if at_root else None, part, root),
            comm.Allgather_init(mine, rows["allgather"]),
            comm.Allgatherv_init(many[:width], [ragged["allgatherv"], counts]),
            comm.Alltoall_init(mine, cols["alltoall"]),
            comm.Alltoallv_init([mine, ones], [cols["alltoallv"], ones]),
            comm.Alltoallw_init([mine, *wide], [cols["alltoallw"], *wide]),
            comm.Reduce_init(mine, sums["reduce"] if at_root else None, MPI.SUM, root),
            comm.Allreduce_init(mine, sums["allreduce"]),
            comm.Reduce_scatter_block_init(mine, block),
            comm.Reduce_scatter_init(many, apart),
            comm.Scan_init(mine, sums["scan"]),
            comm.Exscan_init(mine, sums["exscan"]),
        ]
        assert all(type(request) is MPI.Prequest for request in requests)
        for turn in range(3):
            table = np.random.default_rng(turn).random((size, size))
            mine[:], many[:] = table[rank], rank + turn
            bcast[:] = table[0] if at_root else 0
            MPI.Prequest.Startall(requests)
            MPI.Request.Waitall(requests)
            np.testing.assert_array_equal(bcast, table[0])
            np.testing.assert_array_equal(rows["gather"], table * at_root)
            np.testing.assert_array_equal(rows["allgather"], table)
            for name, whole in ragged.items():
                gathered = np.repeat(np.arange(size) + turn, counts)
                np.testing.assert_array_equal(
                    whole, gathered if at_root or name == "allgatherv" else 0
                )
            np.testing.assert_array_equal(one, table[root][rank])
            np.testing.assert_array_equal(part, root + turn)
            for column in cols.values():
                np.testing.assert_array_equal(column, table[:, rank])
            np.testing.assert_allclose(sums["reduce"], table.sum(0) * at_root)
            np.testing.assert_allclose(sums["allreduce"], table.sum(0))
            np.testing.assert_allclose(block, table[:, rank].sum())
            np.testing.assert_allclose(apart, sum(range(turn, size + turn)))
            np.testing.assert_allclose(sums["scan"], table[: rank + 1].sum(0))
            np.testing.assert_allclose(sums["exscan"], table[:rank].sum(0))
        for request in requests:
            assert request != MPI.REQUEST_NULL
            request.Free()

    sfm_kernel.run(program, n)


def test_rounds_take_their_turn_with_other_calls() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        value, total = np.zeros(1, int), np.zeros(1, int)
        repeated = comm.Allreduce_init(value, total)
        for turn in range(20):
            value[0] = turn
            other = np.array([turn if comm.rank == 1 else -1])
            repeated.Start()
            request = comm.Ibcast(other, root=1)
            assert comm.allreduce(1) == comm.size
            request.Wait()
            repeated.Wait()
            assert (total[0], other[0]) == (turn * comm.size, turn)

    sfm_kernel.run(program, 2)


def test_a_round_must_end_before_the_next() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        request = MPI.COMM_WORLD.Barrier_init()
        request.Wait()  # nothing was started
        request.Start()
        with pytest.raises(MPI.Exception) as caught:
            request.Start()
        assert caught.value.Get_error_class() == MPI.ERR_REQUEST
        request.Wait()

    sfm_kernel.run(program, 2)


def test_a_round_that_failed_may_be_followed_by_another() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        request = comm.Bcast_init(np.zeros(8 if comm.rank == 0 else 4))
        for _ in range(3):
            request.Start()
            if comm.rank == 0:
                request.Wait()
            else:
                with pytest.raises(MPI.Exception) as caught:
                    request.Wait()
                assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE

    sfm_kernel.run(program, 2)
