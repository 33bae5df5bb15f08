"""Collective calls that block: of buffers of every kind."""

from __future__ import annotations

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint

SIZES = [1, 3]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_elements_go_where_they_belong(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        # Cells of the board, trees, and large blocks that go straight to the root.
        for count in 0, 1, 100, 5_000:
            everything = np.arange(size * count, dtype="d").reshape(size, count)
            for root in range(size):
                whole = everything.copy() if rank == root else np.zeros((size, count))
                comm.Bcast(whole, root)
                np.testing.assert_array_equal(whole, everything)
                whole[:] = 0
                comm.Gather(everything[rank], whole if rank == root else None, root)
                assert (whole == (everything if rank == root else 0)).all()
                row = np.zeros(count)
                comm.Scatter(everything if rank == root else None, row, root)
                np.testing.assert_array_equal(row, everything[rank])
            whole = np.zeros((size, count))
            comm.Allgather(everything[rank], whole)
            np.testing.assert_array_equal(whole, everything)
            columns = np.zeros((size, count))
            comm.Alltoall(everything + 1000 * rank, columns)
            senders = 1000 * np.arange(size).reshape(size, 1)
            np.testing.assert_array_equal(columns, everything[rank] + senders)

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_elements_in_place(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        for count in 1, 500:
            everything = np.arange(size * count).reshape(size, count)
            mine = np.where(np.arange(size).reshape(size, 1) == rank, everything, -1)
            whole = mine.copy()
            comm.Allgather(MPI.IN_PLACE, whole)
            np.testing.assert_array_equal(whole, everything)
            whole = mine.copy()
            comm.Allgatherv(MPI.IN_PLACE, [whole, count])
            np.testing.assert_array_equal(whole, everything)
            whole = everything + 1000 * rank
            comm.Alltoall(MPI.IN_PLACE, whole)
            senders = 1000 * np.arange(size).reshape(size, 1)
            np.testing.assert_array_equal(whole, everything[rank] + senders)
            comm.Alltoallv(None, [whole, [count] * size])
            np.testing.assert_array_equal(whole[rank], everything[rank] + 1000 * rank)
            for root in range(size):
                whole = mine.copy()
                if rank == root:
                    comm.Gather(MPI.IN_PLACE, whole, root)
                    np.testing.assert_array_equal(whole, everything)
                    comm.Scatter(whole, MPI.IN_PLACE, root)
                    np.testing.assert_array_equal(whole, everything)
                else:
                    comm.Gather(everything[rank], None, root)
                    comm.Scatter(None, whole[0], root)
                    np.testing.assert_array_equal(whole[0], everything[rank])
                total = everything.copy()
                if rank == root:
                    comm.Reduce(MPI.IN_PLACE, total, root=root)
                else:
                    comm.Reduce(total, None, root=root)
                assert (total == everything * (size if rank == root else 1)).all()
            total = everything + rank
            comm.Allreduce(MPI.IN_PLACE, total, MPI.MAX)
            np.testing.assert_array_equal(total, everything + size - 1)
            comm.Scan(MPI.IN_PLACE, total)
            np.testing.assert_array_equal(total, (everything + size - 1) * (rank + 1))
            before = total.copy()
            comm.Exscan(MPI.IN_PLACE, total)
            sums = (everything + size - 1) * (rank * (rank + 1) // 2)
            np.testing.assert_array_equal(total, sums if rank else before)
            total = everything.copy()
            comm.Reduce_scatter_block(MPI.IN_PLACE, total)
            np.testing.assert_array_equal(total[0], everything[rank] * size)
            total = everything.copy()
            comm.Reduce_scatter(MPI.IN_PLACE, total, [count] * size)
            np.testing.assert_array_equal(total[0], everything[rank] * size)

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_counts_and_displacements(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        counts = [(one + 1) % size * 400 for one in range(size)]  # one of them none
        starts = [1300 * one + 3 for one in reversed(range(size))]
        mine = np.full(counts[rank], rank, "i4")

        def check(whole: np.ndarray) -> None:
            expected = np.full(1300 * size, -1, "i4")
            for one in range(size):
                expected[starts[one] : starts[one] + counts[one]] = one
            np.testing.assert_array_equal(whole, expected)

        def empty() -> np.ndarray:
            return np.full(1300 * size, -1, "i4")

        for root in range(size):
            whole = empty()
            comm.Gatherv(mine, [whole, (counts, starts)] if rank == root else None, root)
            if rank == root:
                check(whole)
            row = np.full(counts[rank], -1, "i4")
            comm.Scatterv([whole, counts, starts, MPI.INT] if rank == root else None, row, root)
            assert (row == rank).all()
        whole = empty()
        comm.Allgatherv([mine, MPI.INT], [whole, counts, starts, MPI.INT])
        check(whole)
        # To rank k go counts[k] elements, from everybody.
        send = np.full(1300 * size, rank, "i4")
        width = counts[rank]
        into = np.full((size, width + 2), -1, "i4")
        comm.Alltoallv([send, (counts, starts)], [into, ([width] * size, width + 2)])
        np.testing.assert_array_equal(
            into[:, :width], np.arange(size).repeat(width).reshape(size, width)
        )
        assert (into[:, width:] == -1).all()
        into[:] = -1
        types = [MPI.INT] * size
        comm.Alltoallw(
            [send, counts, [4 * one for one in starts], types],
            [into, [width] * size, [4 * (width + 2) * one for one in range(size)], types],
        )
        np.testing.assert_array_equal(
            into[:, :width], np.arange(size).repeat(width).reshape(size, width)
        )
        assert (into[:, width:] == -1).all()

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_datatypes_of_both_sides_may_differ(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        column = MPI.DOUBLE.Create_vector(4, 1, size).Create_resized(0, 8).Commit()
        table = np.arange(4.0 * size).reshape(4, size)  # column k is for rank k
        for root in range(size):
            row = np.zeros(4)
            comm.Scatter([table, 1, column] if rank == root else None, row, root)
            np.testing.assert_array_equal(row, table[:, rank])
            whole = np.zeros((4, size))
            comm.Gather(row, [whole, 1, column] if rank == root else None, root)
            assert (whole == (table if rank == root else 0)).all()
            got = np.zeros((4, size))
            if rank == root:
                comm.Bcast([table, size, column], root)
                continue
            comm.Bcast(got, root)
            np.testing.assert_array_equal(got.reshape(size, 4), table.T)
        whole = np.zeros((4, size))
        comm.Allgather(row, [whole, 1, column])
        np.testing.assert_array_equal(whole, table)
        mine, got = table + 100 * rank, np.zeros((size, 4))
        comm.Alltoall([mine, 1, column], got)
        np.testing.assert_array_equal(got, [table[:, rank] + 100 * one for one in range(size)])
        column.Free()

    sfm_kernel.run(program, n)


def test_too_much_for_the_buffer_is_an_error_of_that_member_only() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size

        for count in 10, 2_000:
            data = np.arange(count)
            few = np.zeros(count // 2, int)
            if rank == 1:
                with pytest.raises(MPI.Exception, match="rank 0") as caught:
                    comm.Bcast(few)
                assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
                np.testing.assert_array_equal(few, data[: count // 2])
            else:
                comm.Bcast(data)
            if rank == 0:
                whole = np.zeros((size, count // 2), int)
                with pytest.raises(MPI.Exception, match="rank 0") as caught:
                    comm.Gatherv(data, [whole, count // 2])
                assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
            else:
                comm.Gatherv(data, None)
            comm.Barrier()

    sfm_kernel.run(program, 3)


def test_calls_that_do_not_fit_are_told() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        a, b = np.zeros(3 + comm.rank), np.zeros(3 + comm.rank)
        with pytest.raises(MPI.Exception, match="allreduce") as caught:
            comm.Allreduce(a, b)
        assert caught.value.Get_error_class() == MPI.ERR_OTHER
        comm.Barrier()
        with pytest.raises(MPI.Exception, match="root"):
            comm.reduce(1, root=comm.rank)
        comm.Barrier()
        if comm.rank == 0:
            comm.Bcast(np.zeros(2))
        else:
            with pytest.raises(MPI.Exception, match="16 bytes"):
                comm.Bcast(np.zeros(4))

    sfm_kernel.run(program, 2)


def test_other_transfers_go_on_while_a_member_waits() -> None:
    """Rank 1 comes to the barrier when its message was received, where rank 0 waits already."""

    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        data = np.zeros(1 << 20, "b")
        if comm.rank == 0:
            request = comm.Irecv(data, 1)
            comm.Barrier()
            assert comm.allreduce(1) == 2
            request.Wait()
            assert data.all()
        else:
            data[:] = 1
            comm.Ssend(data, 0)
            comm.Barrier()
            assert comm.allreduce(1) == 2

    sfm_kernel.run(program, 2)


def test_a_large_message() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        data = np.arange(1 << 20) if comm.rank == 0 else np.zeros(1 << 20, int)
        comm.Bcast(data)
        assert (data == np.arange(1 << 20)).all()
        total = np.empty_like(data)
        comm.Allreduce(data, total)
        assert (total == 2 * data).all()

    sfm_kernel.run(program, 2)
