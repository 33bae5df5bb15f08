"""``util``: pkl5, pool and sync."""

from __future__ import annotations

import operator
import threading
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.mpi.util.pool import Pool, ThreadPool

# ---- pkl5 ----


def test_objects_keep_their_buffers_apart() -> None:
    def program(sfm: Endpoint) -> None:
        import cloudpickle

        from sfm_kernel.mpi import MPI
        from sfm_kernel.mpi.util import pkl5

        comm = pkl5.Intracomm(MPI.COMM_WORLD)
        other = 1 - comm.rank
        for round_trip in range(2):
            data = {"a": np.full(1 << 16, comm.rank), "b": [comm.rank]}
            request = comm.isend(data, other, tag=3)
            assert isinstance(request, pkl5.Request)
            got = comm.recv(source=other)
            request.wait()
            assert not request and request == MPI.REQUEST_NULL
            assert (got["a"] == other).all() and got["b"] == [other]
            got["a"][:] = 7  # it is the receiver's own
            request = comm.issend(data, other, tag=4)
            message = comm.mprobe(other, 4)
            assert isinstance(message, pkl5.Message) and message
            status = MPI.Status()
            got = message.irecv().wait(status)
            assert message == MPI.MESSAGE_NULL
            assert (status.source, status.tag) == (other, 4)
            assert status.Get_elements(MPI.BYTE) > data["a"].nbytes
            assert pkl5.Request.waitall([request]) == [None]
            assert comm.sendrecv(comm.rank, other, source=other) == other
            assert comm.bcast(data if comm.rank == 0 else None)["b"] == [0]
            assert comm.gather(comm.rank, 1) == ([0, 1] if comm.rank == 1 else None)
            assert comm.scatter(["x", "y"]) == "xy"[comm.rank]
            assert comm.allgather(comm.rank) == [0, 1]
            assert comm.alltoall([(comm.rank, 0), (comm.rank, 1)]) == [
                (0, comm.rank),
                (1, comm.rank),
            ]
            with pytest.raises(RuntimeError, match="mprobe"):
                comm.irecv()
            if round_trip == 0:  # and again, with another pickle
                pkl5.pickle.__init__(cloudpickle.dumps, cloudpickle.loads)
        square = comm.bcast((lambda x: x * x) if comm.rank == 0 else None)
        assert square(3) == 9
        assert type(comm.Dup()) is pkl5.Intracomm

    sfm_kernel.run(program, 2)


def test_requests_and_messages_compare_as_those_of_mpi() -> None:
    from sfm_kernel.mpi import MPI
    from sfm_kernel.mpi.util import pkl5

    assert pkl5.Request() == pkl5.Request(MPI.REQUEST_NULL) == MPI.REQUEST_NULL
    assert pkl5.Message() == MPI.MESSAGE_NULL != pkl5.Message(MPI.MESSAGE_NO_PROC)
    assert not pkl5.Request() and pkl5.Message(MPI.MESSAGE_NO_PROC)
    assert pkl5.Request() != "text" and pkl5.Message() != "text"


# ---- pool ----


def test_a_pool_of_threads() -> None:
    with ThreadPool(2) as pool:
        assert pool.apply(pow, (2, 5)) == 32
        assert pool.map(abs, range(-10, 0)) == list(range(10, 0, -1))
        assert pool.map(abs, (n for n in range(3)), chunksize=2) == [0, 1, 2]
        assert list(pool.imap(abs, [-1, 2])) == [1, 2]
        assert sorted(pool.imap_unordered(abs, [-1, 2])) == [1, 2]
        assert pool.starmap(pow, [(2, 3), (3, 2)]) == [8, 9]
        assert sorted(pool.istarmap_unordered(pow, [(2, 3), (3, 2)])) == [8, 9]
        seen: list[Any] = []
        result = pool.map_async(abs, [-1, 2], callback=seen.append)
        assert result.get() == [1, 2] == seen[0]
        assert result.ready() and result.successful()
        failing = pool.apply_async(operator.truediv, (1, 0), error_callback=seen.append)
        with pytest.raises(ZeroDivisionError):
            failing.get()
        assert not failing.successful() and isinstance(seen[1], ZeroDivisionError)
        hold = threading.Event()
        slow = pool.apply_async(hold.wait)
        with pytest.raises(ValueError, match="not done"):
            slow.successful()
        with pytest.raises(TimeoutError):
            slow.get(0)
        hold.set()
        assert slow.get() is True
    pool.join()


def test_what_was_terminated_has_no_result() -> None:
    pool = ThreadPool(1)
    begun, hold = threading.Event(), threading.Event()
    first = pool.apply_async(lambda: begun.set() or hold.wait())
    begun.wait()
    second, third = pool.apply_async(abs, (1,)), pool.map_async(abs, [1, 2])
    pool.terminate()
    hold.set()
    pool.join()
    assert first.get() is True
    for result in second, third:
        with pytest.raises(TimeoutError):
            result.get()
        assert not result.successful()


def test_arguments_of_a_pool() -> None:
    with pytest.raises(ValueError, match="1 process or more"):
        Pool(0)
    with pytest.raises(TypeError, match="initializer"):
        Pool(initializer=3)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="maxtasksperchild"):
        Pool(1, maxtasksperchild=1)


# ---- sync ----


@pytest.mark.parametrize("n", [1, 3])
def test_one_after_the_other(n: int) -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI
        from sfm_kernel.mpi.util import sync

        comm = MPI.COMM_WORLD
        counter = sync.Counter(10, 5, comm=comm, root=comm.size - 1)
        with sync.Sequential(comm):
            value = next(counter)
        assert value == 10 + 5 * comm.rank
        comm.Barrier()
        assert counter.next(0) == 10 + 5 * comm.size
        counter.free()
        counter.free()
        with pytest.raises(RuntimeError, match="freed"):
            counter.next()
        small = sync.Counter(254, typecode="B", comm=comm)
        values = comm.allreduce([next(small) for _ in range(2)])
        assert sorted(values) == sorted((254 + k) % 256 for k in range(2 * n))
        small.free()

    sfm_kernel.run(program, n)


def test_one_holds_a_mutex_at_a_time() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI
        from sfm_kernel.mpi.util import sync

        comm = MPI.COMM_WORLD
        counter, mutex = sync.Counter(comm=comm), sync.Mutex(comm=comm)
        with pytest.raises(RuntimeError, match="does not hold"):
            mutex.release()
        for _ in range(5):
            with mutex:
                assert mutex.locked() and mutex.count() == 1
                first = [next(counter) for _ in range(3)]
                assert first == list(range(first[0], first[0] + 3))
                with pytest.raises(RuntimeError, match="already"):
                    mutex.acquire()
        comm.Barrier()
        got = mutex.acquire(blocking=False)
        assert comm.allreduce(got) == 1  # nobody releases before all have asked
        if got:
            mutex.release()
        comm.Barrier()
        mutex.acquire()
        mutex.free()  # releases it
        mutex.free()
        with pytest.raises(RuntimeError, match="freed"):
            mutex.acquire()
        again = sync.Mutex(recursive=True, comm=comm)
        with again, again:
            assert again.count() == 2
        assert not again.locked()
        again.free()
        counter.free()

    sfm_kernel.run(program, 3)


def test_a_condition_wakes_who_waits() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI
        from sfm_kernel.mpi.util import sync

        comm = MPI.COMM_WORLD
        condition, counter = sync.Condition(comm=comm), sync.Counter(comm=comm)
        if comm.rank == 0:
            woken = 0
            while woken < comm.size - 1:
                with condition:
                    next(counter)
                    woken += condition.notify_all()
            with condition:
                assert condition.notify() == 0
        else:
            with condition:
                condition.wait()
                assert condition.wait_for(lambda: counter.next(0)) > 0
                assert condition.locked()
        with pytest.raises(RuntimeError, match="does not hold"):
            condition.wait()
        with pytest.raises(RuntimeError, match="does not hold"):
            condition.notify()
        mutex = sync.Mutex(comm=comm)
        other = sync.Condition(mutex)
        other.acquire()
        mutex.free()
        other.free()
        for each in condition, counter:
            each.free()

    sfm_kernel.run(program, 3)


def test_a_semaphore_has_so_many_permits() -> None:
    def program(sfm: Endpoint) -> None:
        from sfm_kernel.mpi import MPI
        from sfm_kernel.mpi.util import sync

        comm = MPI.COMM_WORLD
        with pytest.raises(ValueError):
            sync.Semaphore(-1)
        semaphore = sync.Semaphore(2, comm=comm)
        got = semaphore.acquire(blocking=False)
        assert comm.allreduce(got) == 2
        if got:
            semaphore.release()
        comm.Barrier()
        with pytest.raises(ValueError, match="than were taken"):
            semaphore.release()
        comm.Barrier()
        for _ in range(3):
            with semaphore:
                pass
        semaphore.free()

    sfm_kernel.run(program, 3)
