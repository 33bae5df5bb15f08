"""Messages between processes: order, modes, large ones, messages under way, and errors."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import mpi

Program = Callable[[Any, Any], Any]
LARGE = 3_000_000
"""Bytes: a dozen chunks, and no whole number of them."""


def run(program: Program, n: int = 2) -> list[Any]:
    """Run ``program(comm, MPI)`` on each rank; return the results by rank."""

    def started(sfm: Any) -> Any:
        mpi.use(sfm)
        from mpi4py import MPI

        return program(MPI.COMM_WORLD, MPI)

    return sfm_kernel.run(started, n, timeout=60)


@pytest.mark.parametrize("nbytes", [0, 1, 1000, 1 << 18, (1 << 18) + 1, LARGE])
def test_buffers_arrive_whole(nbytes: int) -> None:
    def program(comm: Any, MPI: Any) -> Any:
        data = np.random.default_rng(comm.rank).integers(0, 256, nbytes).astype(np.uint8)
        other, status, got = 1 - comm.rank, MPI.Status(), np.empty(nbytes + 7, np.uint8)
        request = comm.Isend(data, other, 5)
        comm.Recv(got, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        request.Wait()
        expected = np.random.default_rng(other).integers(0, 256, nbytes).astype(np.uint8)
        assert (got[:nbytes] == expected).all()
        return status.source, status.tag, status.Get_count()

    assert run(program) == [(1, 5, nbytes), (0, 5, nbytes)]


def test_messages_do_not_overtake() -> None:
    sizes = [10, LARGE, 0, 300_000, 8, LARGE, 1]

    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            buffers = [np.full(size, nth, np.uint8) for nth, size in enumerate(sizes)]
            MPI.Request.Waitall([comm.Isend(buffer, 1, 3) for buffer in buffers])
            comm.send("an object", 1, 3)
            return None
        got = []
        for _ in sizes:
            status, into = MPI.Status(), np.empty(LARGE, np.uint8)
            comm.Recv(into, 0, MPI.ANY_TAG, status)
            got.append((status.Get_count(), set(into[: status.Get_count()].tolist())))
        return got, comm.recv()

    got, last = run(program)[1]
    assert got == [(size, {nth} if size else set()) for nth, size in enumerate(sizes)]
    assert last == "an object"


def test_posted_receives_get_messages_in_their_order() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            comm.recv(None, 1)  # all are posted
            for tag in (2, 1, 1, 2, 3):
                comm.send((tag, "of rank 0"), 1, tag)
            return None
        wanted = [1, MPI.ANY_TAG, 1, MPI.ANY_TAG, 3]
        requests = [comm.irecv(None, 0, tag) for tag in wanted]
        comm.send("go", 0)
        return [value[0] for value in MPI.Request.waitall(requests)]

    assert run(program)[1] == [1, 2, 1, 2, 3]


def test_a_blocking_receive_does_not_take_what_was_posted_for() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            for n in range(4):
                comm.send(n, 1, 7)
            return None
        posted = comm.irecv(None, MPI.ANY_SOURCE, 7)
        second = comm.recv(None, 0, 7)
        third = comm.irecv()
        return [posted.wait(), second, third.wait(), comm.recv()]

    assert run(program)[1] == [0, 1, 2, 3]


@pytest.mark.parametrize("size", [8, LARGE])
def test_two_that_send_first_need_a_receive_that_is_posted(size: int) -> None:
    """Large and synchronous sends wait for each other's receives, which are posted."""

    def program(comm: Any, MPI: Any) -> Any:
        other, got = 1 - comm.rank, np.empty(size, np.uint8)
        request = comm.Irecv(got, other)
        comm.Ssend(np.full(size, comm.rank, np.uint8), other)
        request.Wait()
        comm.Barrier()
        return set(got.tolist())

    assert run(program) == [{1}, {0}]


def test_a_message_under_way_goes_on_while_a_process_is_in_a_collective() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            request = comm.Isend(np.ones(LARGE, np.uint8), 1)
            comm.Barrier()
            request.Wait()
            return None
        got = np.zeros(LARGE, np.uint8)
        comm.Recv(got, 0)  # needs rank 0, which waits for this one in the barrier
        comm.Barrier()
        return int(got.sum())

    assert run(program)[1] == LARGE


def test_synchronous_sends_end_when_they_are_matched() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            requests = [comm.issend("an object", 1, 1), comm.Issend(np.ones(4), 1, 2)]
            first = [request.Test() for request in requests]
            comm.send("not yet", 1, 3)
            comm.recv(None, 1, 4)  # rank 1 has received none of both
            second = [request.Test() for request in requests]
            comm.send("now", 1, 3)
            MPI.Request.Waitall(requests)
            return first + second
        comm.recv(None, 0, 3)
        comm.send("none", 0, 4)
        comm.recv(None, 0, 3)
        got = np.zeros(4)
        comm.Recv(got, 0, 2)
        return comm.recv(None, 0, 1), got.sum()

    assert run(program) == [[False] * 4, ("an object", 4.0)]


def test_truncation() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            for size in (10, LARGE):
                comm.Send(np.ones(size, np.uint8), 1)
            comm.send("after", 1)
            return None
        codes = []
        for room in (9, LARGE - 1):
            try:
                comm.Recv(np.empty(room, np.uint8), 0)
            except MPI.Exception as error:
                codes.append(error.Get_error_class() == MPI.ERR_TRUNCATE)
        return codes, comm.recv()

    assert run(program)[1] == ([True, True], "after")


def test_cancel() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        status = MPI.Status()
        request = comm.irecv(None, 1 - comm.rank, 99)
        request.Cancel()
        request.Wait(status)
        comm.Barrier()  # before, the message of the other could come in time for the receive
        comm.send("x", 1 - comm.rank, 99)
        return status.Is_cancelled(), comm.recv(None, MPI.ANY_SOURCE, 99)

    assert run(program) == [(True, "x")] * 2


def test_probes() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            assert not comm.Iprobe()
            comm.Send(np.arange(5.0), 1, 4)
            comm.Send(np.arange(LARGE // 8, dtype=float), 1, 5)
            comm.Send(np.arange(1.0), 1, 6)
            return None
        status, seen = MPI.Status(), []
        for tag in (5, 6, 4):
            message = comm.Mprobe(0, tag, status)
            seen.append((status.source, status.tag))
            got = np.empty(status.Get_count(MPI.DOUBLE))
            message.Recv(got)
            seen.append(float(got.sum()))
            assert message == MPI.MESSAGE_NULL
        assert not comm.Iprobe()
        return seen

    n = LARGE // 8
    assert run(program)[1] == [
        (0, 5), n * (n - 1) / 2, (0, 6), 0.0, (0, 4), 10.0,
    ]  # fmt: skip


def test_a_probe_leaves_what_was_posted_for() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            comm.send("posted", 1, 1)
            comm.send("probed", 1, 1)
            return None
        request, status = comm.irecv(None, 0, 1), MPI.Status()
        comm.Probe(0, MPI.ANY_TAG, status)
        return comm.recv(None, 0, 1), request.wait()

    assert run(program)[1] == ("probed", "posted")


def test_objects_and_buffers_meet() -> None:
    """As in mpi4py: an object travels as the bytes of its pickle."""

    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            comm.send([1, "two"], 1)
            comm.Send([bytearray(pickle.dumps({"a": 3})), MPI.BYTE], 1)
            return None
        status = MPI.Status()
        comm.Probe(0, 0, status)
        got = bytearray(status.Get_count(MPI.BYTE))
        comm.Recv([got, MPI.BYTE], 0)
        return pickle.loads(got), comm.recv()

    assert run(program)[1] == ([1, "two"], {"a": 3})


def test_buffering_of_0_makes_standard_sends_synchronous() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        from sfm_kernel import mpi

        mpi.buffering(0)
        if comm.rank == 0:
            requests = [comm.isend(1, 1), comm.Isend(np.ones(1), 1)]
            tested = [request.Test() for request in requests]
            comm.Barrier()
            MPI.Request.Waitall(requests)
            comm.send("returns when it was received", 1)
            return tested
        comm.Barrier()
        got = np.empty(1)
        return comm.recv(), comm.Recv(got), comm.recv()

    assert run(program)[0] == [False, False]


def test_a_peer_that_dies_is_an_error() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 1:
            comm.send("before", 0, 8)
            os.kill(os.getpid(), signal.SIGKILL)
        codes = []
        for wait in (
            lambda: comm.recv(None, 1, 9),
            lambda: comm.Recv(np.empty(1), 1, 9),
            lambda: comm.irecv(None, 1, 9).wait(),
            lambda: comm.Ssend(np.empty(1), 1),
            lambda: comm.Send(np.empty(LARGE), 1),
            lambda: comm.Probe(1, 9),
            lambda: comm.recv(None, MPI.ANY_SOURCE, 9),
        ):
            try:
                wait()
            except MPI.Exception as error:
                codes.append(error.Get_error_class())
        assert codes == [MPI.ERR_PROC_FAILED] * 7
        return comm.recv(None, 1, 8)

    with pytest.raises(sfm_kernel.ProcessFailed, match="SIGKILL"):
        run(program)


def test_wrong_arguments_send_nothing() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        classes = []
        for call in (
            lambda: comm.send(1, 5),
            lambda: comm.send(1, -7),
            lambda: comm.Send(np.ones(1), 2),
            lambda: comm.send(1, 0, -3),
            lambda: comm.Send(np.ones(1), 0, -3),
            lambda: comm.recv(None, 2),
            lambda: comm.Recv(np.ones(1), 0, -5),
            lambda: comm.isend(1, 0, -1),
            lambda: MPI.COMM_NULL.send(1, 0),
        ):
            try:
                call()
            except MPI.Exception as error:
                classes.append(error.Get_error_class())
        rank, tag = MPI.ERR_RANK, MPI.ERR_TAG
        assert classes == [rank, rank, rank, tag, tag, rank, tag, tag, MPI.ERR_COMM]
        for call in (lambda: comm.send(1), lambda: comm.send(1, 0, 0, 0), lambda: comm.Send(1, 0)):
            with pytest.raises(TypeError):
                call()
        comm.Barrier()
        return comm.Iprobe()

    assert run(program) == [False, False]


def test_threads_receive_at_once() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        other = 1 - comm.rank

        def talk(tag: int) -> int:
            total = 0
            for n in range(50):
                request = comm.irecv(None, other, tag)
                comm.send(n, other, tag)
                total += request.wait()
            return total

        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(talk, range(4)))

    assert run(program) == [[1225] * 4] * 2


def test_partitions_may_be_cut_differently() -> None:
    def program(comm: Any, MPI: Any) -> Any:
        if comm.rank == 0:
            data = np.arange(12.0)
            request = comm.Psend_init(data, 3, 1, 0)
            for _ in range(2):
                request.Start()
                for partition in (2, 0, 1):
                    request.Pready(partition)
                request.Wait()
                data += 100
            return None
        got, seen = np.zeros(12), []
        request = comm.Precv_init(got, 4, 0, 0)
        for _ in range(2):
            request.Start()
            while not all(request.Parrived(partition) for partition in range(4)):
                pass
            request.Wait()
            seen.append(got.sum())
        return seen

    assert run(program)[1] == [66.0, 1266.0]


@pytest.mark.parametrize("ranks", [1, 3])
def test_everybody_sends_to_everybody_also_to_itself(ranks: int) -> None:
    def program(comm: Any, MPI: Any) -> Any:
        sends, receives = [], []
        for rank in range(comm.size):
            for size in (1, 40_000):
                receives.append((np.empty(size), rank))
                sends.append(comm.Isend(np.full(size, comm.rank * 1.0), rank, size))
        requests = [comm.Irecv(into, rank, len(into)) for into, rank in receives]
        MPI.Request.Waitall(sends + requests)
        return all((into == rank).all() for into, rank in receives)

    assert run(program, ranks) == [True] * ranks
