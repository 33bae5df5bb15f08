"""Reductions of buffers: the operations of MPI, and those of programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint

SIZES = [1, 2, 3]


@pytest.mark.parametrize("n", SIZES)
def test_reductions(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        same: list[tuple[Any, np.ufunc, str]] = [
            (MPI.SUM, np.add, "bhilqBHILQfdgFD"),
            (MPI.PROD, np.multiply, "bhilqBHILQfdgFD"),
            (MPI.MAX, np.maximum, "bhilqBHILQfdg"),
            (MPI.MIN, np.minimum, "bhilqBHILQfdg"),
            (MPI.BXOR, np.bitwise_xor, "bhilqBHILQ"),
        ]
        for count in 0, 3, 20_000:
            rng = np.random.default_rng(count)
            for code in "bhilqBHILQfdgFD" if count == 3 else "bdD":
                given = rng.integers(0, 100, (size, size, count)).astype(code)
                mine = given[rank]
                for op, ufunc, codes in same:
                    if code not in codes:
                        continue
                    total = ufunc.reduce(given, dtype=code)
                    out = np.zeros_like(mine)
                    comm.Allreduce(mine, out, op)
                    np.testing.assert_allclose(out, total)
                    root = count % size
                    out = np.zeros_like(mine)
                    comm.Reduce(mine, out if rank == root else None, op, root)
                    np.testing.assert_allclose(out, total if rank == root else 0)
                    row = np.zeros_like(mine[0])
                    comm.Reduce_scatter_block(mine, row, op)
                    np.testing.assert_allclose(row, total[rank])
                    row = np.zeros_like(mine[0])
                    comm.Reduce_scatter(mine, row, [count] * size, op)
                    np.testing.assert_allclose(row, total[rank])
                    comm.Scan(mine, out, op)
                    np.testing.assert_allclose(out, ufunc.reduce(given[: rank + 1], dtype=code))
                    out[:] = 1
                    comm.Exscan(mine, out, op)
                    before = ufunc.reduce(given[:rank], dtype=code) if rank else np.ones_like(out)
                    np.testing.assert_allclose(out, before)

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_operations_of_a_program_keep_the_order_of_ranks(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        def compose(a: MPI.buffer, b: MPI.buffer, datatype: MPI.Datatype) -> None:
            assert datatype == kind
            first, then = (np.frombuffer(one, "q").reshape(-1, 2) for one in (a, b))
            then[:, 1] += then[:, 0] * first[:, 1]  # x -> k x + c, one after the other
            then[:, 0] *= first[:, 0]

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        op = MPI.Op.Create(compose, commute=False)
        kind = MPI.INT64_T.Create_contiguous(2).Commit()

        def together(ranks: range) -> list[int]:
            k, c = 1, 0
            for one in ranks:
                k, c = k * (one + 2), c * (one + 2) + one + 1
            return [k, c]

        for count in 1, 5_000:
            mine = np.array([[rank + 2, rank + 1]] * size * count)
            out = np.zeros_like(mine)
            block = np.zeros((count, 2), "q")
            comm.Allreduce([mine, kind], [out, kind], op)
            assert (out == together(range(size))).all()
            comm.Scan([mine, kind], [out, kind], op)
            assert (out == together(range(rank + 1))).all()
            comm.Exscan([mine, kind], [out, kind], op)
            assert (out == together(range(rank or 1))).all()
            comm.Reduce_scatter_block([mine, kind], [block, kind], op)
            assert (block == together(range(size))).all()
            for root in range(size):
                out[:] = 0
                comm.Reduce([mine, kind], [out, kind], op, root)
                assert (out == (together(range(size)) if rank == root else 0)).all()
        op.Free()

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_pairs_and_elements_that_lie_apart_are_reduced(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        pair = np.dtype([("value", "d"), ("place", "i4")], align=True)
        for count in 2, 500:
            mine = np.zeros(count, pair)
            mine["value"], mine["place"] = rank % 2, rank
            out = np.zeros(count, pair)
            comm.Allreduce([mine, MPI.DOUBLE_INT], [out, MPI.DOUBLE_INT], MPI.MAXLOC)
            best = min(size - 1, 1)
            assert (out["value"] == best).all() and (out["place"] == best).all()
            comm.Scan([mine, MPI.DOUBLE_INT], [out, MPI.DOUBLE_INT], MPI.MINLOC)
            assert (out["value"] == 0).all() and (out["place"] == 0).all()

        def add(a: MPI.buffer, b: MPI.buffer, datatype: MPI.Datatype) -> None:
            np.frombuffer(b, "d")[:] += np.frombuffer(a, "d")

        op = MPI.Op.Create(add, commute=True)
        every_other = MPI.DOUBLE.Create_vector(3, 1, 2).Commit()
        memory, result = np.full(6, rank + 1.0), np.full(6, -1.0)
        comm.Allreduce([memory, 1, every_other], [result, 1, every_other], op)
        total = size * (size + 1) / 2
        np.testing.assert_array_equal(result, [total, -1, total, -1, total, -1])

    sfm_kernel.run(program, n)


def test_an_operation_that_is_not_defined_for_the_elements() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        a, b = np.zeros(3), np.zeros(3)
        for call in comm.Allreduce, comm.Iallreduce, comm.Allreduce_init, comm.Scan, comm.Reduce:
            for op in MPI.BAND, MPI.MAXLOC, MPI.OP_NULL:
                with pytest.raises(MPI.Exception) as caught:
                    call(a, b, op)
                assert caught.value.Get_error_class() == MPI.ERR_OP
        with pytest.raises(TypeError):
            comm.Allreduce(a, b, max)  # type: ignore[arg-type]

    sfm_kernel.run(program, 2)
