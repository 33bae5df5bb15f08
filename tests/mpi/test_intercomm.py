"""Intercommunicators: how they are made, messages and collectives between two groups."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint

SIZES = [2, 3, 5]


def halves(comm: Any) -> tuple[Any, int]:
    """The ranks below the middle, and the others, connected; and which half this one is in."""
    middle = comm.size // 2
    half = int(comm.rank >= middle)
    local = comm.Split(half)
    between = local.Create_intercomm(0, comm, 0 if half else middle, tag=5)
    local.Free()
    return between, half


@pytest.mark.parametrize("n", SIZES)
def test_two_groups_and_one_again(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        between, half = halves(world)
        middle = n // 2
        sizes = (middle, n - middle)
        assert type(between) is MPI.Intercomm
        assert between.is_inter and not between.is_intra
        assert (between.size, between.remote_size) == (sizes[half], sizes[1 - half])
        assert between.rank == world.rank - middle * half
        others = between.remote_group
        ranks = MPI.Group.Translate_ranks(others, list(range(others.size)), world.group)
        assert ranks == list(range(0 if half else middle, middle if half else n))
        for high in 0, 1:  # the half that comes last
            whole = between.Merge(half == high)
            expected = (world.rank + (0 if high else n - middle)) % n
            assert (whole.size, whole.rank) == (n, expected)
            assert whole.allreduce(1) == n
            whole.Free()
        either = between.Merge(False)
        assert sorted(either.allgather(either.rank)) == list(range(n))
        with pytest.raises(TypeError):
            MPI.Intracomm(between)
        with pytest.raises(TypeError):
            MPI.Intercomm(world)

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_made_of_another_one(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        between, half = halves(MPI.COMM_WORLD)
        twin = between.Dup()
        assert between.Compare(twin) == MPI.CONGRUENT
        assert twin.allgather(half) == [1 - half] * twin.remote_size
        later, request = between.Idup()
        request.Wait()
        assert later.allgather(half) == [1 - half] * twin.remote_size
        first = between.Create(between.group.Incl([0]))
        if between.rank == 0:
            assert (first.size, first.remote_size) == (1, 1)
            assert first.allgather("x" * half) == ["x" * (1 - half)]
        else:
            assert first == MPI.COMM_NULL
        pair = between.Split(between.rank, 0)
        if between.rank < min(between.size, between.remote_size):
            assert (pair.size, pair.remote_size) == (1, 1)
            assert pair.alltoall([between.rank]) == [between.rank]
        else:
            assert pair == MPI.COMM_NULL
        for comm in between, twin, later:
            comm.Disconnect()
            assert comm == MPI.COMM_NULL

    sfm_kernel.run(program, n)


def test_made_of_groups() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        if world.rank == 1:
            return  # it is in neither
        local = world.group.Incl([0, 3] if world.rank in (0, 3) else [2])
        remote = world.group.Incl([2] if world.rank in (0, 3) else [0, 3])
        between = MPI.Intercomm.Create_from_groups(
            local, 0, remote, 0, "a tag", MPI.Info.Create({"k": "v"}), MPI.ERRORS_RETURN
        )
        assert (between.size, between.remote_size) == (local.size, remote.size)
        assert between.allgather(world.rank) == ([2] if local.size == 2 else [0, 3])
        assert between.info["k"] == "v"
        with pytest.raises(MPI.Exception, match="not in local_group") as caught:
            MPI.Intercomm.Create_from_groups(remote, 0, local, 0)
        assert caught.value.error_class == MPI.ERR_GROUP
        with pytest.raises(MPI.Exception, match="both groups") as caught:
            MPI.Intercomm.Create_from_groups(local, 0, local, 0)
        assert caught.value.error_class == MPI.ERR_COMM
        with pytest.raises(MPI.Exception, match="no rank") as caught:
            MPI.Intercomm.Create_from_groups(local, local.size, remote, 0)
        assert caught.value.error_class == MPI.ERR_RANK

    sfm_kernel.run(program, 4)


def test_wrong_leaders() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        local = world.Split(0)
        with pytest.raises(MPI.Exception, match="local_leader") as caught:
            local.Create_intercomm(world.size, world, 0)
        assert caught.value.error_class == MPI.ERR_RANK
        # The leader sees it; who cannot is told.
        with pytest.raises(MPI.Exception, match="remote_leader is a rank of peer_comm"):
            local.Create_intercomm(0, world if world.rank == 0 else MPI.COMM_NULL, world.size)
        with pytest.raises(MPI.Exception, match="COMM_NULL"):
            local.Create_intercomm(1, MPI.COMM_NULL, 0)
        with pytest.raises(MPI.Exception, match="both groups"):
            local.Create_intercomm(0, world, 0)

    sfm_kernel.run(program, 2)


@pytest.mark.parametrize("n", [2, 3])
def test_messages_go_to_the_other_group(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        between, half = halves(MPI.COMM_WORLD)
        status = MPI.Status()
        for rank in range(between.remote_size):
            between.send((half, between.rank), rank, tag=half)
        for rank in range(between.remote_size):
            assert between.recv(source=rank) == (1 - half, rank)
        for rank in range(between.remote_size):
            between.Isend(np.full(3, between.rank), rank)
        seen = set()
        for _ in range(between.remote_size):
            got = np.empty(3, int)
            between.Recv(got, status=status)
            assert (got == status.source).all()
            seen.add(status.source)
        assert seen == set(range(between.remote_size))
        between.Barrier()

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_collectives_of_objects(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm, half = halves(MPI.COMM_WORLD)
        others = range(comm.remote_size)
        comm.barrier()
        for giving in 0, 1:
            if half == giving:
                for root in range(comm.size):
                    role = MPI.ROOT if comm.rank == root else MPI.PROC_NULL
                    at_root = role == MPI.ROOT
                    assert comm.bcast({"a": np.arange(3)}, role) is None
                    assert comm.scatter([f"{rank}" for rank in others], role) is None
                    gathered = comm.gather("unused", role)
                    assert gathered == ([(rank,) for rank in others] if at_root else None)
                    total = comm.reduce(None, MPI.SUM, role)
                    assert total == (sum(others) if at_root else None)
                    ranks = comm.reduce(None, lambda a, b: a + b, role)
                    assert ranks == ("".join(map(str, others)) if at_root else None)
            else:
                for root in others:
                    assert list(comm.bcast(None, root)["a"]) == [0, 1, 2]
                    assert comm.scatter(None, root) == str(comm.rank)
                    assert comm.gather((comm.rank,), root) is None
                    assert comm.reduce(comm.rank, MPI.SUM, root) is None
                    assert comm.reduce(str(comm.rank), lambda a, b: a + b, root) is None
        assert comm.allgather([half]) == [[1 - half]] * len(others)
        swapped = comm.alltoall([(comm.rank, rank) for rank in others])
        assert swapped == [(rank, comm.rank) for rank in others]
        assert comm.allreduce([comm.rank]) == list(others)
        assert comm.allreduce(comm.rank, MPI.MAX) == len(others) - 1

    sfm_kernel.run(program, n)


@pytest.mark.parametrize("n", SIZES)
def test_collectives_of_buffers(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm, half = halves(MPI.COMM_WORLD)
        size, others, count = comm.size, comm.remote_size, 4
        mine = np.full(count, float(comm.rank))
        for giving in 0, 1:
            if half == giving:
                for root in range(size):
                    role = MPI.ROOT if comm.rank == root else MPI.PROC_NULL
                    at_root = role == MPI.ROOT
                    comm.Bcast(np.arange(5.0), role)
                    got = np.zeros((others, count))
                    comm.Gather(None, got if at_root else None, role)
                    comm.Scatter(got + 1 if at_root else None, None, role)
                    assert not (got - (np.arange(others)[:, None] if at_root else 0)).any()
                    parts = np.zeros(others * (others + 1) // 2)
                    counts = [rank + 1 for rank in range(others)]
                    comm.Gatherv(None, [parts, counts] if at_root else None, role)
                    assert parts.sum() == (
                        sum(r * (r + 1) for r in range(others)) if at_root else 0
                    )
                    comm.Scatterv([parts, counts] if at_root else None, None, role)
                    total = np.zeros(count)
                    comm.Reduce(None, total if at_root else None, MPI.SUM, role)
                    assert (total == (sum(range(others)) if at_root else 0)).all()
            else:
                for root in range(others):
                    got = np.zeros(5)
                    comm.Bcast(got, root)
                    assert list(got) == [0, 1, 2, 3, 4]
                    comm.Gather(mine, None, root)
                    got = np.zeros(count)
                    comm.Scatter(None, got, root)
                    assert (got == comm.rank + 1).all()
                    part = np.full(comm.rank + 1, float(comm.rank))
                    comm.Gatherv(part, None, root)
                    comm.Scatterv(None, got[: comm.rank + 1], root)
                    assert (got[: comm.rank + 1] == comm.rank).all()
                    comm.Reduce(mine, None, MPI.SUM, root)
        table = np.zeros((others, count))
        column = np.arange(others)[:, None]
        comm.Allgather(mine, table)
        assert (table == column).all()
        table[:] = 0
        comm.Alltoall(np.full((others, count), float(comm.rank)), table)
        assert (table == column).all()
        kinds = [MPI.DOUBLE] * others
        at = [8 * count * rank for rank in range(others)]
        table[:] = 0
        given = np.full((others, count), float(comm.rank))
        comm.Alltoallw(
            [given, ([count] * others, at), kinds], [table, ([count] * others, at), kinds]
        )
        assert (table == column).all()
        total = np.zeros(count)
        comm.Allreduce(mine, total, MPI.MAX)
        assert (total == others - 1).all()
        # As many numbers on both sides, in as many blocks as there are processes.
        numbers = np.arange(float(size * others))
        block = np.zeros(others)
        comm.Reduce_scatter_block(numbers, block, MPI.SUM)
        expected = others * numbers.reshape(size, others)[comm.rank]
        assert (block == expected).all()
        block[:] = 0
        comm.Reduce_scatter(numbers, block, [others] * size, MPI.SUM)
        assert (block == expected).all()

    sfm_kernel.run(program, n)


def test_collectives_that_do_not_block() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm, _ = halves(MPI.COMM_WORLD)
        total, table = np.zeros(1), np.zeros(comm.remote_size)
        requests = [
            comm.Ibarrier(),
            comm.Iallreduce(np.full(1, 2.0), total),
            comm.Iallgather(np.full(1, float(comm.rank)), table),
        ]
        assert comm.allreduce(1) == comm.remote_size  # a call that blocks, beside them
        MPI.Request.Waitall(requests)
        assert total[0] == 2 * comm.remote_size
        assert list(table) == list(range(comm.remote_size))

    sfm_kernel.run(program, 3)


def test_errors() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm, half = halves(MPI.COMM_WORLD)
        for root in -5, comm.remote_size:
            with pytest.raises(MPI.Exception, match="no rank") as caught:
                comm.bcast(None, root)
            assert caught.value.error_class == MPI.ERR_ROOT
        wrong = [None] * (comm.remote_size + 1)
        with pytest.raises(ValueError, match="one item for each"):
            comm.alltoall(wrong)
        got = np.zeros(2)
        if half == 0:
            comm.Bcast(np.arange(3.0), MPI.ROOT)
        else:
            with pytest.raises(MPI.Exception, match="receives 16") as caught:
                comm.Bcast(got, 0)
            assert caught.value.error_class == MPI.ERR_TRUNCATE
            assert list(got) == [0, 1]
        assert comm.allreduce(1) == comm.remote_size

    sfm_kernel.run(program, 3)


def test_who_cannot_go_on_tells_the_other_group() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm, half = halves(MPI.COMM_WORLD)
        secret = threading.Lock()  # cannot be pickled

        def fails(a: int, b: int) -> int:
            raise KeyError("my own mistake")

        if half == 0:
            with pytest.raises(TypeError):
                comm.bcast(secret, MPI.ROOT)
            with pytest.raises(TypeError):
                comm.allgather(secret)
        else:
            with pytest.raises(MPI.Exception, match="cannot be sent"):
                comm.bcast(None, 0)
            with pytest.raises(MPI.Exception, match="cannot be sent"):
                comm.allgather(None)
        assert comm.allreduce(1) == comm.remote_size
        if half == 0:
            with pytest.raises(MPI.Exception, match="my own mistake"):
                comm.reduce(None, fails, MPI.ROOT)
        else:
            with suppress(MPI.Exception, KeyError):  # who has given what it has may be gone
                comm.reduce(1, fails, 0)

    sfm_kernel.run(program, 3)
