"""Collective calls that block: of objects, of buffers, of every kind of buffer."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint

SIZES = [1, 3]


# ---- objects ----


@pytest.mark.parametrize("n", SIZES)
def test_objects_go_where_they_belong(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        values = [None, -7, 2**80, 1.5, 2 - 3j, "text", b"", [1, {"k": (2, None)}], np.arange(5)]
        for root in range(size):
            for value in values:
                own = value if rank == root else None
                np.testing.assert_equal(comm.bcast(own, root=root), value)
                gathered = comm.gather((rank, value), root)
                expected = [(one, value) for one in range(size)]
                np.testing.assert_equal(gathered, expected if rank == root else None)
                given = [(one, value) for one in range(size)] if rank == root else None
                np.testing.assert_equal(comm.scatter(given, root), (rank, value))
        for value in values:
            expected = [(one, value) for one in range(size)]
            np.testing.assert_equal(comm.allgather((rank, value)), expected)
            from_all = comm.alltoall([(rank, one, value) for one in range(size)])
            np.testing.assert_equal(from_all, [(one, rank, value) for one in range(size)])
        assert comm.scatter(None if rank else [None] * size) is None
        assert comm.alltoall(None) == [None] * size
        comm.barrier()

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_objects_are_combined_in_the_order_of_ranks(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        word = "abcdefgh"[:size]
        for op in MPI.SUM, operator.add, lambda a, b: a + b, MPI.Op.Create(lambda a, b, _: a + b):
            assert comm.allreduce(word[rank], op) == word
            assert comm.scan(word[rank], op) == word[: rank + 1]
            assert comm.exscan(word[rank], op) == (word[:rank] if rank else None)
            for root in range(size):
                assert comm.reduce(word[rank], op, root) == (word if rank == root else None)
        assert comm.allreduce((rank % 2, rank), MPI.MAXLOC) == ((1, 1) if size > 1 else (0, 0))
        assert comm.allreduce((rank % 2, rank), MPI.MINLOC) == (0, 0)
        assert comm.allreduce(rank, MPI.REPLACE) == size - 1
        assert comm.allreduce(rank, MPI.NO_OP) == 0
        assert comm.allreduce({rank}, MPI.BOR) == set(range(size))
        assert comm.allreduce(rank == 0, MPI.LXOR) is True
        assert comm.allreduce(2**62 + rank, MPI.PROD) == int(
            np.prod([2**62 + one for one in range(size)], dtype=object)
        )

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_types_of_reduced_numbers_are_kept(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        for value in 3, 1.5, np.float64(1.5), np.int32(3), 1j:
            for result in comm.allreduce(value), comm.reduce(value), comm.scan(value):
                assert result is None or type(result) is type(value)

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_arrays_of_other_shapes_and_numbers_are_reduced_as_python_does(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        for length in 3, 30_000:
            value: Any = np.full((2, length), 1.0) if rank == 0 else np.arange(length) * rank
            if rank == 2:
                value = 7
            before = value.copy() if rank != 2 else value
            row = np.arange(length) * (size > 1) + 7 * (size > 2)
            total = comm.allreduce(value)
            assert type(total) is np.ndarray
            np.testing.assert_array_equal(total, 1.0 + np.stack([row, row]))
            total[:] = 0
            np.testing.assert_array_equal(value, before)
            whole = comm.reduce(value, root=size - 1)
            if rank == size - 1:
                assert type(whole) is np.ndarray
                np.testing.assert_array_equal(whole, 1.0 + np.stack([row, row]))
            assert type(comm.scan(value)) is np.ndarray

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_what_is_returned_is_a_copy(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        mine = [rank]

        def extend(one: list[int], other: list[int]) -> list[int]:
            one.extend(other)  # changes what it was given
            return one

        comm.bcast(mine, root=0).append(1)
        for one in comm.gather(mine) or []:
            one.append(1)
        for one in comm.allgather(mine):
            one.append(1)
        for one in comm.alltoall([mine] * size):
            one.append(1)
        comm.scatter([mine] * size).append(1)
        assert comm.allreduce(mine, extend) == list(range(size))
        assert comm.scan(mine, extend) == list(range(rank + 1))
        assert comm.exscan(mine, extend) == (list(range(rank)) if rank else None)
        comm.reduce(mine, extend)
        assert mine == [rank]

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_pickle_may_be_changed(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        import json

        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        rank, size = comm.rank, comm.size
        MPI.pickle.__init__(lambda obj: json.dumps(obj).encode(), json.loads)  # type: ignore[misc]
        pair, listed = (rank, "x"), [rank, "x"]  # JSON knows no tuples
        everybody = [[one, "x"] for one in range(size)]
        assert comm.bcast(pair, root=size - 1) == [size - 1, "x"]
        assert comm.allgather(pair) == everybody
        assert comm.gather(pair) == (None if rank else everybody)
        assert comm.scatter([pair] * size) == [0, "x"]
        assert comm.alltoall([pair] * size) == everybody
        together = [one for pair in everybody for one in pair]
        assert comm.allreduce(pair) == together
        assert comm.reduce(pair) == (None if rank else together)
        assert comm.scan(pair) == together[: 2 * rank + 2]
        assert comm.exscan(pair) == (together[: 2 * rank] if rank else None)
        MPI.pickle.__init__()  # type: ignore[misc]
        assert comm.allgather(listed) == everybody

    sfm_kernel.run(program, n)


def test_one_item_for_each_rank() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        for wrong in [], [1], [1, 2, 3]:
            with pytest.raises(ValueError, match="2 ranks"):
                comm.alltoall(wrong)
            if comm.rank == 0:
                with pytest.raises(ValueError, match="2 ranks"):
                    comm.scatter(wrong)
        assert comm.scatter([5, 6] if comm.rank == 0 else None) == 5 + comm.rank

    sfm_kernel.run(program, 2)


@pytest.mark.parametrize("n", [1, 2])
def test_a_root_that_does_not_exist(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD
        memory = np.zeros(comm.size)
        for root in -1, comm.size, MPI.ROOT, MPI.PROC_NULL:
            calls: list[tuple[Any, ...]] = [
                (comm.bcast, 1, root),
                (comm.gather, 1, root),
                (comm.scatter, [1] * comm.size, root),
                (comm.reduce, 1, MPI.SUM, root),
                (comm.Bcast, memory, root),
                (comm.Gather, memory[:1], memory, root),
                (comm.Scatter, memory, memory[:1], root),
                (comm.Reduce, memory.copy(), memory, MPI.SUM, root),
                (comm.Ibcast, memory, root),
                (comm.Bcast_init, memory, root),
            ]
            for call, *given in calls:
                with pytest.raises(MPI.Exception) as caught:
                    call(*given)
                assert caught.value.Get_error_class() == MPI.ERR_ROOT
        comm.Barrier()

    sfm_kernel.run(program, n)


def test_null_communicators() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.Intracomm(MPI.COMM_NULL)
        for call in (
            comm.barrier,
            comm.Barrier,
            comm.Ibarrier,
            comm.Barrier_init,
            lambda: comm.bcast(1),
            lambda: comm.allreduce(1),
            lambda: comm.scan(1),
            lambda: comm.Allreduce(np.zeros(1), np.zeros(1)),
        ):
            with pytest.raises(MPI.Exception) as caught:
                call()
            assert caught.value.Get_error_class() == MPI.ERR_COMM

    sfm_kernel.run(program, 1)


def test_stop_ends_a_call_beside_which_a_thread_helps() -> None:
    """A receive is under way, which a thread moves on during the barriers of rank 0."""

    def program(sfm: Endpoint) -> None:
        import os
        import signal
        import threading
        import time

        from sfm_kernel.mpi import MPI

        def a_thread_helps() -> bool:
            return any(one.name == "sfm-mpi-progress" for one in threading.enumerate())

        def press_stop() -> None:
            while not a_thread_helps():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        comm = MPI.COMM_WORLD
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for turn in range(2):  # while the others are waited for, and in a group that is there
            if comm.rank == 0:
                while a_thread_helps():  # that of the turn before
                    time.sleep(0.01)
                request = comm.irecv(source=1, tag=7)
                thread = threading.Thread(target=press_stop)
                thread.start()
                with pytest.raises(KeyboardInterrupt):
                    comm.Barrier()
                thread.join()
                comm.send("stopped", 1)
            else:
                assert comm.recv(source=0) == "stopped"
                if turn > 0:
                    with pytest.raises(MPI.Exception, match="KeyboardInterrupt"):
                        comm.Barrier()
            comm.Barrier()
            if comm.rank == 0:
                request.wait()
            else:
                comm.send("go on", 0, tag=7)

    sfm_kernel.run(program, 2)
