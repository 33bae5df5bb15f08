"""Collective calls that return at once, and are waited for later."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint

SIZES = [1, 3]


@pytest.mark.parametrize("n", SIZES)
def test_they_do_what_the_blocking_calls_do(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        counts = list(range(1, size + 1))
        rng = np.random.default_rng(5)
        table = rng.random((size, size))
        mine = table[rank]
        column = np.ascontiguousarray(table[:, rank])
        root = size - 1
        into = {name: np.zeros(size) for name in ("bcast", "reduce", "allreduce", "scan", "exscan")}
        into["bcast"][:] = mine
        into |= {name: np.zeros((size, size)) for name in ("gather", "allgather")}
        into |= {name: np.zeros(size) for name in ("alltoall", "alltoallv", "alltoallw")}
        into |= {name: np.zeros(1) for name in ("scatter", "block")}
        ragged = np.zeros(sum(counts))
        part, apart = np.zeros(counts[rank]), np.zeros(counts[rank])
        many = np.full(sum(counts), rank + 1.0)
        ones, places = [1] * size, [8 * one for one in range(size)]
        wide = [ones, places, [MPI.DOUBLE] * size]
        at_root = rank == root
        requests = [
            comm.Ibarrier(),
            comm.Ibcast(into["bcast"], root),
            comm.Igather(mine, into["gather"] if at_root else None, root),
            comm.Igatherv(many[: counts[rank]], [ragged, counts] if at_root else None, root),
            comm.Iscatter(table[0] if at_root else None, into["scatter"], root),
            comm.Iscatterv([many, counts] if at_root else None, part, root),
            comm.Iallgather(mine, into["allgather"]),
            comm.Iallgatherv(many[: counts[rank]], [np.zeros(sum(counts)), counts]),
            comm.Ialltoall(mine, into["alltoall"]),
            comm.Ialltoallv([mine, ones], [into["alltoallv"], ones]),
            comm.Ialltoallw([mine, *wide], [into["alltoallw"], *wide]),
            comm.Ireduce(mine, into["reduce"] if at_root else None, MPI.SUM, root),
            comm.Iallreduce(mine, into["allreduce"], MPI.MAX),
            comm.Ireduce_scatter_block(mine, into["block"]),
            comm.Ireduce_scatter(many, apart, None, MPI.SUM),
            comm.Iscan(mine, into["scan"]),
            comm.Iexscan(mine, into["exscan"]),
        ]
        assert all(type(request) is MPI.Request for request in requests)
        MPI.Request.Waitall(requests)
        assert all(request == MPI.REQUEST_NULL for request in requests)
        np.testing.assert_array_equal(into["bcast"], table[root])
        np.testing.assert_array_equal(into["gather"], table * at_root)
        np.testing.assert_array_equal(ragged, np.repeat(counts, counts) * at_root)
        np.testing.assert_array_equal(into["scatter"], table[0][rank])
        np.testing.assert_array_equal(part, size)
        np.testing.assert_array_equal(into["allgather"], table)
        for name in "alltoall", "alltoallv", "alltoallw":
            np.testing.assert_array_equal(into[name], column)
        np.testing.assert_allclose(into["reduce"], table.sum(0) * at_root)
        np.testing.assert_array_equal(into["allreduce"], table.max(0))
        np.testing.assert_allclose(into["block"], column.sum())
        np.testing.assert_allclose(apart, size * (size + 1) / 2)
        np.testing.assert_allclose(into["scan"], table[: rank + 1].sum(0))
        np.testing.assert_allclose(into["exscan"], table[:rank].sum(0))

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_many_at_once_beside_blocking_calls(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        results = [np.zeros(3, int) for _ in range(40)]
        requests = []
        for nth, result in enumerate(results):
            if nth % 2:
                result[:] = nth if rank == nth % size else 0
                requests.append(comm.Ibcast(result, nth % size))
            else:
                requests.append(comm.Iallreduce(np.full(3, nth), result))
            assert comm.allreduce(nth) == nth * size
        other = comm.Dup()
        requests.append(other.Ibarrier())
        MPI.Request.Waitall(requests[::-1])
        for nth, result in enumerate(results):
            assert (result == (nth if nth % 2 else nth * size)).all()
        other.Free()

    sfm_kernel.run(program, n)


def test_nobody_waits_before_the_wait() -> None:
    """Rank 1 starts only when rank 0 has told it that its call has returned."""

    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        total = np.zeros(1, int)
        if comm.rank == 0:
            request = comm.Iallreduce(np.array([1]), total)
            assert not request.Test()
            comm.send("started", 1)
        else:
            assert comm.recv(source=0) == "started"
            request = comm.Iallreduce(np.array([2]), total)
        request.Wait()
        assert total[0] == 3

    sfm_kernel.run(program, 2)


def test_what_went_wrong_is_raised_by_the_wait() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        memory = np.zeros(8 if comm.rank == 0 else 4)
        request = comm.Ibcast(memory)
        if comm.rank == 0:
            request.Wait()
        else:
            with pytest.raises(MPI.Exception, match="32 from it") as caught:
                request.Wait()
            assert caught.value.Get_error_class() == MPI.ERR_TRUNCATE
        # Calls that do not fit are told to both; then the next ones are made.
        request = comm.Ibarrier() if comm.rank == 0 else comm.Iallreduce(memory.copy(), memory)
        with pytest.raises(MPI.Exception, match="allreduce"):
            request.Wait()
        comm.Ibarrier().Wait()

    sfm_kernel.run(program, 2)


def test_datatypes_and_operations_may_be_freed_before_the_wait() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        def add(a: MPI.buffer, b: MPI.buffer, datatype: MPI.Datatype) -> None:
            np.frombuffer(b, "d")[:] += np.frombuffer(a, "d")

        comm = MPI.COMM_WORLD
        memory, total = np.arange(6.0), np.zeros(6)
        kind, op = MPI.DOUBLE.Create_vector(3, 1, 2).Commit(), MPI.Op.Create(add)
        request = comm.Iallreduce([memory, 1, kind], [total, 1, kind], op)
        kind.Free()
        op.Free()
        request.Wait()
        np.testing.assert_array_equal(total, [0, 0, 4, 0, 8, 0])

    sfm_kernel.run(program, 2)


def test_the_thread_ends_and_is_begun_again() -> None:
    def program(sfm: Endpoint) -> None:
        import threading
        import time

        from sfm_kernel.mpi import MPI

        def workers() -> list[Any]:
            return [one for one in threading.enumerate() if one.name.startswith("sfm-mpi")]

        comm = MPI.COMM_WORLD.Dup()
        for _ in range(2):
            comm.Ibarrier().Wait()
            assert len(workers()) <= 1
            while workers():
                time.sleep(0.01)
        request = comm.Ibarrier()
        comm.Free()  # once what was started is done
        request.Wait()
        MPI.COMM_SELF.Ibarrier().Wait()
        while workers():
            time.sleep(0.01)

    sfm_kernel.run(program, 2)


def test_a_started_call_ends_with_its_process() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        if sfm.rank == 0:
            MPI.COMM_WORLD.Ibarrier()  # which rank 1 never makes

    sfm_kernel.run(program, 2)


@pytest.mark.fault
def test_a_member_that_died_is_an_error_of_the_wait() -> None:
    def program(sfm: Endpoint) -> None:
        import os
        import signal

        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        comm.Ibarrier().Wait()
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        for call in (lambda: comm.Ibarrier().Wait()), comm.Barrier:
            with pytest.raises(MPI.Exception) as caught:
                call()
            assert caught.value.Get_error_class() == MPI.ERR_PROC_FAILED
        raise KeyError("both were told")

    with pytest.raises(sfm_kernel.ProcessFailed):
        sfm_kernel.run(program, 2)
