"""Sessions, and buffers for buffered sends."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.base import buffered
from sfm_kernel.mpi.engine.operation import Operation, finished


def test_a_session_has_hints_a_handler_and_sets() -> None:
    session = MPI.Session.Init(MPI.Info.Create({"a": "b"}), MPI.ERRORS_ABORT)
    assert session and session == MPI.Session(session) != MPI.SESSION_NULL
    assert session.Get_info().items() == [("a", "b")]
    assert session.Get_errhandler() == MPI.ERRORS_ABORT
    session.Set_errhandler(MPI.ERRORS_RETURN)
    names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
    assert names == ["mpi://WORLD", "mpi://SELF"]
    with pytest.raises(MPI.Exception):
        session.Get_nth_pset(2)
    with pytest.raises(ValueError, match="pickled"):
        pickle.dumps(session)
    session.free()
    with pytest.raises(MPI.Exception) as caught:
        session.Get_num_psets()
    assert caught.value == MPI.ERR_SESSION


def test_a_communicator_without_world() -> None:
    def program(sfm: Any) -> tuple[Any, ...]:
        from sfm_kernel.mpi import MPI

        session = MPI.Session.Init()
        sizes = [session.Get_pset_info(one)["mpi_size"] for one in ("mpi://WORLD", "mpi://SELF")]
        comm = MPI.Intracomm.Create_from_group(session.Create_group("mpi://WORLD"))
        total = comm.allreduce(comm.rank)
        comm.Free()
        session.Finalize()
        return *sizes, total

    assert sfm_kernel.run(program, 3) == [("3", "1", 3)] * 3


def test_what_is_attached_comes_back() -> None:
    memory = bytearray(1000)
    MPI.Attach_buffer(memory)
    with pytest.raises(MPI.Exception, match="already"):
        MPI.Attach_buffer(memory)
    MPI.Flush_buffer()
    MPI.Iflush_buffer().Wait()
    assert MPI.Detach_buffer() is memory
    for automatic in (None, MPI.BUFFER_AUTOMATIC):
        MPI.Attach_buffer(automatic)
        assert MPI.Detach_buffer() == MPI.BUFFER_AUTOMATIC
    assert len(MPI.Detach_buffer()) == 0
    with pytest.raises(BufferError):
        MPI.Attach_buffer(b"read-only")


def test_messages_take_room_until_they_are_received() -> None:
    comm = type("State", (), {"attached": None})()
    with pytest.raises(MPI.Exception, match="no buffer") as caught:
        buffered.room_for(comm, 1)
    assert caught.value == MPI.ERR_BUFFER
    MPI.Attach_buffer(bytearray(1000))
    try:
        room, under_way = buffered.room_for(comm, 900), Operation()
        room.keep(under_way, 900)
        room.keep(finished(), 900)  # it is over: nothing is kept
        with pytest.raises(MPI.Exception, match=r"needs 196 .* 100 free"):
            buffered.room_for(comm, 100)
        under_way.finish()
        assert buffered.room_for(comm, 1000 - MPI.BSEND_OVERHEAD) is room
    finally:
        MPI.Detach_buffer()


def test_the_buffer_of_a_session_serves_communicators_without_one() -> None:
    session = MPI.Session.Init()
    memory = MPI.Alloc_mem(1000)
    session.Attach_buffer(memory)
    assert buffered.room_for(object(), 10).given is memory
    assert session.Detach_buffer() is memory
    session.Attach_buffer(None)
    session.Finalize()
    with pytest.raises(MPI.Exception):
        buffered.room_for(object(), 10)


def test_buffered_sends_need_an_attached_buffer() -> None:
    def program(sfm: Any) -> list[Any]:
        from sfm_kernel.mpi import MPI

        comm, data, found = MPI.COMM_WORLD, np.arange(10.0), np.zeros(10)
        seen: list[Any] = []
        try:
            comm.Bsend(data, comm.rank)
        except MPI.Exception as error:
            seen.append(error.Get_error_class())
        seen.append(comm.Iprobe(comm.rank))  # nothing was sent
        comm.Attach_buffer(MPI.Alloc_mem(data.nbytes + MPI.BSEND_OVERHEAD))
        comm.Bsend(data, comm.rank)
        comm.Recv(found, comm.rank)
        comm.Flush_buffer()
        return [*seen, len(comm.Detach_buffer()), found.sum()]

    assert sfm_kernel.run(program, 1) == [[MPI.ERR_BUFFER, False, 80 + MPI.BSEND_OVERHEAD, 45.0]]
