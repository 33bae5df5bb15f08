"""Communicators: what they are, how others are made of them, and their end."""

from __future__ import annotations

from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint


def fails_with(code: int, call: Any, *given: Any) -> bool:
    from sfm_kernel.mpi import MPI

    try:
        call(*given)
    except MPI.Exception as error:
        return error.Get_error_class() == code
    return False


@pytest.mark.parametrize("n", [1, 3])
def test_world_and_self(n: int) -> None:
    def program(sfm: Endpoint) -> tuple[int, int]:
        import pickle

        from sfm_kernel.mpi import MPI

        world, own = MPI.COMM_WORLD, MPI.COMM_SELF
        assert type(world) is type(own) is MPI.Intracomm
        assert (own.size, own.rank) == (1, 0)
        assert (world.name, own.name) == ("MPI_COMM_WORLD", "MPI_COMM_SELF")
        assert world.Is_intra() and not world.is_inter
        assert world.topology == MPI.UNDEFINED and not world.is_topo
        for comm in (world, own, MPI.COMM_NULL):
            assert pickle.loads(pickle.dumps(comm)) is comm
            copy = MPI.Comm(comm)
            assert copy == comm and pickle.loads(pickle.dumps(copy)) == comm
            assert MPI.Comm.fromhandle(comm.handle) == comm
            assert fails_with(MPI.ERR_COMM, copy.Free)
        world.free()
        assert world
        assert world.Compare(world) == MPI.IDENT
        assert world.Compare(own) == (MPI.CONGRUENT if world.size == 1 else MPI.UNEQUAL)
        assert MPI.Comm.Get_parent() == MPI.COMM_NULL
        return world.rank, world.size

    assert sfm_kernel.run(program, n) == [(rank, n) for rank in range(n)]


def test_null_and_freed() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        freed = MPI.COMM_WORLD.Dup()
        copy = MPI.Intracomm(freed)
        freed.Free()
        assert freed == MPI.COMM_NULL and not freed
        assert MPI.COMM_NULL.name == freed.name == "MPI_COMM_NULL"
        for comm in (MPI.COMM_NULL, freed, copy, MPI.Intracomm(), MPI.Cartcomm()):
            for call in (comm.Get_size, comm.Get_group, comm.Is_inter, comm.Dup, comm.Barrier):
                assert fails_with(MPI.ERR_COMM, call), call
            assert fails_with(MPI.ERR_COMM, comm.Free)
            assert fails_with(MPI.ERR_COMM, comm.Set_name, "x")
            assert fails_with(MPI.ERR_COMM, comm.send, 1, 0)
            assert fails_with(MPI.ERR_COMM, comm.bcast, 1)
            assert fails_with(MPI.ERR_COMM, comm.Split)
        no_communicators: list[Any] = [1, "comm", MPI.GROUP_NULL]
        for wrong in no_communicators:
            try:
                MPI.Comm(wrong)
            except TypeError:
                continue
            raise AssertionError(f"{wrong} has become a communicator")

    sfm_kernel.run(program, 1)


def test_names_and_hints() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        comm = MPI.COMM_WORLD.Dup(MPI.Info.Create({"a": "1"}))
        assert comm.name == ""
        comm.name = "mine"
        assert comm.Get_name() == "mine"
        comm.Set_name("x" * 1000)
        assert len(comm.name) == MPI.MAX_OBJECT_NAME - 1
        comm.info = MPI.Info.Create({"b": "2"})
        assert dict(comm.info.items()) == {"a": "1", "b": "2"}
        assert dict(comm.Dup().info.items()) == {}
        assert dict(comm.Dup_with_info(comm.info).info.items()) == {"a": "1", "b": "2"}
        assert fails_with(MPI.ERR_INFO, comm.Set_info, MPI.INFO_NULL)

    sfm_kernel.run(program, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_duplicates_are_apart(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        first, second = world.Dup(), MPI.Comm(world).Clone()
        assert type(second) is MPI.Comm
        third, request = world.Idup()
        request.Wait()
        made = [first, second, third]
        assert all(world.Compare(comm) == MPI.CONGRUENT for comm in made)
        for nth, comm in enumerate(made):
            comm.isend(nth, (rank + 1) % size, 5)
        for nth, comm in reversed(list(enumerate(made))):
            assert comm.recv(source=(rank - 1) % size, tag=5) == nth
        # All members know each of them by a name of its own.
        ids = [comm._live.cid for comm in made]
        assert world.allgather(ids) == [ids] * size
        assert len({*ids, world._live.cid}) == 4
        for comm in made:
            comm.Free()

    sfm_kernel.run(program, n)


def test_attributes_go_along() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        log: list[Any] = []
        kept = MPI.Comm.Create_keyval(True, lambda comm, key, value: log.append(value))
        counted = MPI.Comm.Create_keyval(lambda comm, key, value: value + 1)
        left = MPI.Comm.Create_keyval()
        comm = MPI.COMM_WORLD.Dup()
        for key in (kept, counted, left):
            comm.Set_attr(key, 1)
        again = comm.Dup()
        assert [again.Get_attr(key) for key in (kept, counted, left)] == [1, 2, None]
        later, request = again.Idup()
        request.Wait()
        assert [later.Get_attr(key) for key in (kept, counted, left)] == [1, 3, None]
        assert comm.Split().Get_attr(kept) is None
        for one in (later, again, comm):
            one.Free()
        assert log == [1, 1, 1]

        def fails(comm: Any, key: int, value: Any) -> None:
            raise KeyError("mine")

        comm = MPI.COMM_WORLD.Dup()
        comm.Set_attr(MPI.Comm.Create_keyval(fails), 1)
        assert fails_with(MPI.ERR_OTHER, comm.Dup)
        comm.Barrier()

    sfm_kernel.run(program, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_split(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        rank, size = world.rank, world.size
        parity = world.Split(rank % 2, -rank)
        mine = [one for one in reversed(range(size)) if one % 2 == rank % 2]
        assert parity.allgather(rank) == mine
        assert parity.rank == mine.index(rank)
        assert world.Split(7, 7).Compare(world) == MPI.CONGRUENT
        assert world.Split(0, -rank).Compare(world) == (MPI.SIMILAR if size > 1 else MPI.CONGRUENT)
        some = world.Split(0 if rank else MPI.UNDEFINED)
        assert (some == MPI.COMM_NULL) == (rank == 0)
        assert type(some) is MPI.Intracomm
        if some:
            assert some.size == size - 1
            half = some.Split(some.rank % 2)
            assert half.allreduce(1) == half.size

    sfm_kernel.run(program, n)


def test_processes_that_share_memory() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        machine = world.Split_type(MPI.COMM_TYPE_SHARED, key=-world.rank)
        assert machine.allgather(world.rank) == [1, 0]
        assert world.Split_type(MPI.UNDEFINED) == MPI.COMM_NULL
        hint = MPI.Info.Create({"mpi_hw_resource_type": "mpi_shared_memory"})
        for kind in (MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_RESOURCE_GUIDED):
            assert world.Split_type(kind) == MPI.COMM_NULL
            assert world.Split_type(kind, info=hint).size == 2
        assert world.Split_type(MPI.COMM_TYPE_HW_UNGUIDED) == MPI.COMM_NULL  # one machine
        assert fails_with(MPI.ERR_ARG, world.Split_type, 99)

    sfm_kernel.run(program, 2)


def test_communicators_of_groups() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        rank, everybody = world.rank, world.group
        back = world.Create(everybody.Incl([2, 1]))
        assert (back == MPI.COMM_NULL) == (rank == 0)
        if back:
            assert back.allgather(rank) == [2, 1]
        # Two at once, each of a group of its own.
        part = everybody.Incl([0]) if rank == 0 else everybody.Excl([0])
        assert world.Create(part).group.Compare(part) == MPI.IDENT
        assert world.Create(MPI.GROUP_EMPTY) == MPI.COMM_NULL
        # Only its members make this one.
        pair = everybody.Incl([0, 2])
        if rank != 1:
            made = [world.Create_group(pair), world.Create_group(pair, tag=3)]
            made.append(MPI.Intracomm.Create_from_group(pair))
            made.append(MPI.Intracomm.Create_from_group(pair, "another"))
            for comm in made:
                assert comm.allgather(rank) == [0, 2]
            assert len({comm._live.cid for comm in made}) == 4
        assert world.Create_group(MPI.GROUP_EMPTY) == MPI.COMM_NULL
        assert MPI.Intracomm.Create_from_group(MPI.GROUP_EMPTY) == MPI.COMM_NULL

        for call in (world.Create, world.Create_group, MPI.Intracomm.Create_from_group):
            assert fails_with(MPI.ERR_GROUP, call, MPI.GROUP_NULL)
        if rank == 1:
            assert fails_with(MPI.ERR_GROUP, MPI.Intracomm.Create_from_group, pair)
        single = everybody.Incl([(rank + 1) % 3])
        assert fails_with(MPI.ERR_GROUP, MPI.COMM_SELF.Create, single)
        assert fails_with(MPI.ERR_GROUP, MPI.COMM_SELF.Create_group, single)
        # Its members disagree on the group: all of them hear of it.
        given = everybody if rank else everybody.Incl([1, 0, 2])
        assert fails_with(MPI.ERR_GROUP, world.Create, given)
        assert world.allgather(rank) == [0, 1, 2]

    sfm_kernel.run(program, 3)


def test_the_end_of_a_communicator() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        world = MPI.COMM_WORLD
        for _ in range(20):
            comm = world.Dup()
            comm.allreduce(1)
            comm.Free()
        comm = world.Dup()
        receive = comm.irecv(source=0, tag=1)
        if comm.rank == 0:
            for dest in range(comm.size):
                comm.send("last", dest, 1)
        comm.Free()  # what was begun still comes to its end
        assert receive.wait() == "last"
        comm = world.Split(world.rank)
        comm.Disconnect()
        assert comm == MPI.COMM_NULL
        assert fails_with(MPI.ERR_COMM, MPI.Intracomm(world).Disconnect)

    sfm_kernel.run(program, 3)


def test_a_class_of_the_program() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        class Mine(MPI.Intracomm):
            def __new__(cls, comm: Any = None) -> Mine:
                return super().__new__(cls, comm and comm.Dup())

        mine = Mine(MPI.COMM_WORLD)
        assert type(mine.Clone()) is type(mine) is Mine
        assert mine.Compare(MPI.COMM_WORLD) == MPI.CONGRUENT
        assert type(mine.Split()) is MPI.Intracomm

    sfm_kernel.run(program, 1)


def test_abort_ends_a_run() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI

        if sfm.rank == 1:
            MPI.COMM_WORLD.Abort(3)
        MPI.COMM_WORLD.recv()

    with pytest.raises(sfm_kernel.ProcessFailed) as caught:
        sfm_kernel.run(program, 2)
    assert caught.value.rank == 1
