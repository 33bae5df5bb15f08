"""Executors: on threads, on processes of their own, on ranks of a job."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.mpi import futures
from sfm_kernel.mpi.futures.aplus import ThenableFuture

from .launching import run


def square(x: int) -> int:
    return x * x


def fail(text: str) -> None:
    raise KeyError(text)


class Odd(Exception):
    """Can be pickled, and then not be made again."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_odd() -> None:
    raise Odd(1, 2)


def rank_and_size() -> tuple[int, int]:
    comm = futures.get_comm_workers()
    total: int = comm.allreduce(1)
    return comm.rank, total


# ---- threads ----


@pytest.fixture
def threads() -> Any:
    with futures.ThreadPoolExecutor(3) as executor:
        yield executor


def test_results_in_order_and_as_they_come(threads: Any) -> None:
    assert threads.num_workers == 3
    assert threads.submit(pow, 2, exp=5).result() == 32
    assert list(threads.map(pow, [2, 3], [3, 2])) == [8, 9]
    assert list(threads.starmap(pow, [(2, 3), (3, 2)], chunksize=5)) == [8, 9]
    assert list(threads.map(square, range(9), chunksize=2, buffersize=2)) == [
        x * x for x in range(9)
    ]
    assert sorted(threads.map(square, range(9), unordered=True)) == [x * x for x in range(9)]
    first = threading.Event()
    order = threads.map(lambda x: first.wait() if x else first.set(), [1, 0], unordered=True)
    assert list(order) == [None, True]


def test_no_more_tasks_are_ahead_than_asked_for(threads: Any) -> None:
    given: list[int] = []

    def numbers() -> Any:
        for number in range(10):
            given.append(number)
            yield number

    results = threads.map(square, numbers(), buffersize=3)
    assert len(given) == 3
    assert next(results) == 0
    assert len(given) == 4
    assert len(list(results)) == 9


def test_what_a_call_raises_comes_from_the_iterator(threads: Any) -> None:
    results = threads.map(divmod, [1, 1, 1], [2, 0, 3])
    assert next(results) == (0, 1)
    with pytest.raises(ZeroDivisionError):
        next(results)
    with pytest.raises(ValueError, match="chunksize"):
        threads.map(square, [], chunksize=0)
    with pytest.raises(TypeError, match="buffersize"):
        threads.map(square, [], buffersize="1")
    with pytest.raises(ValueError, match="in order"):
        threads.map(square, [], buffersize=1, unordered=True)
    hold = threading.Event()
    with pytest.raises(TimeoutError):
        next(threads.map(lambda _: hold.wait(), [1], timeout=0))
    hold.set()


def test_after_shutdown() -> None:
    executor = futures.ThreadPoolExecutor(1)
    assert executor.bootup() is executor
    begun, hold = threading.Event(), threading.Event()
    running = executor.submit(lambda: begun.set() or hold.wait())
    waiting = executor.submit(square, 2)
    begun.wait()
    executor.shutdown(wait=False, cancel_futures=True)
    hold.set()
    executor.shutdown()
    executor.shutdown()
    assert running.result() is True and waiting.cancelled()
    assert executor.num_workers == 0
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(square, 1)
    with pytest.raises(RuntimeError, match="shut down"):
        executor.bootup()


def test_an_executor_that_nobody_has_ends() -> None:
    executor = futures.ThreadPoolExecutor(2)
    future = executor.submit(square, 3)
    pool = executor._pool
    assert pool is not None
    del executor
    gc.collect()
    pool.join()
    assert future.result() == 9


def test_an_initializer_that_raises() -> None:
    executor = futures.ThreadPoolExecutor(1, initializer=fail, initargs=("no",))
    with pytest.raises(futures.BrokenExecutor, match="initializer"):
        executor.submit(square, 1).result()
    with pytest.raises(futures.BrokenExecutor, match="initializer"):
        executor.submit(square, 1)
    assert executor.num_workers == 0
    for wrong in 0, -1:
        with pytest.raises(ValueError, match="max_workers"):
            futures.MPIPoolExecutor(wrong)
    with pytest.raises(TypeError, match="initializer"):
        futures.MPIPoolExecutor(initializer=3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="service"):
        futures.MPIPoolExecutor(service="name").bootup()


# ---- processes of their own ----


def test_processes() -> None:
    before = set(sfm_kernel.directory.worlds())
    local = [1]
    nothing = dict.fromkeys(("globals", "path", "wdir", "env", "python_exe", "python_args"))
    with futures.MPIPoolExecutor(2, **nothing) as executor:
        assert executor.num_workers == 2
        assert list(executor.map(square, range(5))) == [0, 1, 4, 9, 16]
        assert executor.submit(lambda x: x + local[0], 2).result() == 3  # by value
        array = np.arange(1 << 20)
        assert executor.submit(np.negative, array).result()[5] == -5
        both = [executor.submit(rank_and_size) for _ in range(2)]
        assert {future.result() for future in both} == {(0, 2), (1, 2)}
        error = executor.submit(fail, "my own mistake").exception()
        assert isinstance(error, KeyError) and error.args == ("my own mistake",)
        assert "in fail" in str(error.__cause__) and "of 2 on" in str(error.__cause__)
        with pytest.raises(RuntimeError, match="Odd: 1 and 2; this cannot be sent"):
            executor.submit(raise_odd).result()
        with pytest.raises(TypeError, match="pickle"):
            executor.submit(square, threading.Lock()).result()
        with pytest.raises(TypeError, match="pickle"):
            executor.submit(threading.Lock).result()
        with pytest.raises(RuntimeError, match="no communicator of workers"):
            futures.get_comm_workers()
        assert executor.submit(square, 2).result() == 4
    assert set(sfm_kernel.directory.worlds()) == before


@pytest.mark.fault
def test_a_worker_that_dies_breaks_the_executor() -> None:
    with futures.MPIPoolExecutor(1) as executor:
        future = executor.submit(os.kill, executor.submit(os.getpid).result(), signal.SIGKILL)
        with pytest.raises(futures.BrokenExecutor, match="worker 0 has died"):
            future.result()
        with pytest.raises(futures.BrokenExecutor):
            executor.submit(square, 1).result()


def test_workers_that_cannot_start() -> None:
    with futures.MPIPoolExecutor(1, python_args=["-c", "raise SystemExit(3)"]) as executor:
        with pytest.raises(futures.BrokenExecutor, match="ended with exit status 3"):
            executor.submit(square, 1).result()
    with futures.MPIPoolExecutor(1, python_exe="/no/such/python") as executor:
        with pytest.raises(futures.BrokenExecutor, match="/no/such/python"):
            executor.submit(square, 1).result()
    with futures.MPIPoolExecutor(1, initializer=fail, initargs=("unwell",)) as executor:
        with pytest.raises(futures.BrokenExecutor, match=r"initializer failed.*unwell"):
            executor.submit(square, 1).result()


SCRIPT = """
import os, sys
from mpi4py.futures import MPIPoolExecutor

class Point:
    def __init__(self, x):
        self.x = x

def double(point):
    return Point(2 * point.x), __name__, os.getcwd(), os.environ.get("TOLD"), sys.path[-1], given

given = None
{guard}
    options = dict(wdir="/", env={{"TOLD": "x"}}, path=["/else"], globals={{"given": 7}})
    with MPIPoolExecutor(1, **options) as executor:
        point, *others = executor.submit(double, Point(4)).result()
        print(type(point) is Point, point.x, *others)
"""


def script(folder: Path, guard: str) -> subprocess.CompletedProcess[str]:
    path = folder / "program.py"
    path.write_text(SCRIPT.format(guard=guard).replace("given = None\n", ""))
    return run("-n", "1", str(path))


def test_workers_find_the_functions_of_a_script(tmp_path: Path) -> None:
    done = script(tmp_path, 'if __name__ == "__main__":')
    assert done.stdout == "True 8 __worker__ / x /else 7\n", done


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    done = script(tmp_path, "if True:")
    assert done.returncode == 1
    assert "makes an executor whenever it is imported" in done.stderr
    assert "if __name__ == '__main__'" in done.stderr


def test_functions_of_no_script_go_by_value() -> None:
    text = """
from sfm_kernel.mpi.futures import MPIPoolExecutor
class Pair:
    pass
def make(x):
    pair = Pair()
    pair.x = x + offset
    return pair
offset = 10
with MPIPoolExecutor(2) as executor:
    pairs = list(executor.map(make, range(3)))
print([pair.x for pair in pairs], all(type(pair) is Pair for pair in pairs))
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "[10, 11, 12] True\n", done.stderr


@pytest.mark.fault
def test_no_worker_survives_its_master() -> None:
    text = """
import os, time
from sfm_kernel.mpi.futures import MPIPoolExecutor
executor = MPIPoolExecutor(1)
print(executor.submit(os.getpid).result(), flush=True)
executor.submit(time.sleep, 1000)
time.sleep(1000)
"""
    with subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True
    ) as master:
        assert master.stdout is not None
        worker = int(master.stdout.readline())
        master.kill()
    deadline = time.monotonic() + 20
    while os.path.exists(f"/proc/{worker}"):
        assert time.monotonic() < deadline, "a worker survived its master"
        time.sleep(0.02)


# ---- ranks of a job ----


@pytest.mark.parametrize("n", [1, 3])
def test_the_ranks_of_a_communicator(n: int) -> None:
    def program(sfm: Endpoint) -> Any:
        from sfm_kernel.mpi import MPI
        from sfm_kernel.mpi.futures import MPICommExecutor, get_comm_workers

        def whom() -> tuple[int, int]:
            comm = get_comm_workers()
            return comm.rank, comm.size

        comm = MPI.COMM_WORLD
        for root in range(n):
            with MPICommExecutor(comm, root) as executor:
                assert (executor is not None) == (comm.rank == root)
                assert executor is not None
                assert executor.num_workers == max(1, n - 1)
                assert list(executor.map(lambda x: x * x, range(4))) == [0, 1, 4, 9]
                assert executor.submit(whom).result()[1] == max(1, n - 1)
                with pytest.raises(ZeroDivisionError):
                    executor.submit(divmod, 1, 0).result()
        with pytest.raises(ValueError, match="root"):
            MPICommExecutor(comm, n)
        twice = MPICommExecutor(MPI.COMM_SELF)
        with twice, pytest.raises(RuntimeError, match="entered already"), twice:
            pass
        with pytest.raises(RuntimeError):
            get_comm_workers()

    sfm_kernel.run(program, n)


SHARED = """
import threading
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor, MPIPoolExecutor, get_comm_workers

def whom(x):
    return x, __name__, get_comm_workers().size

if __name__ == "__main__":
    assert MPI.COMM_WORLD.rank == 0
    executors = [MPIPoolExecutor(initializer=abs, initargs=(1,)) for _ in range(3)]
    futures = [one.submit(whom, x) for x in range(5) for one in executors]
    assert [future.result()[0] for future in futures] == [x for x in range(5) for _ in range(3)]
    print(futures[0].result()[1:], executors[0].num_workers)
    with MPICommExecutor() as executor:
        assert sum(executor.map(abs, [-1, 2])) == 3
    raise SystemExit(4)
"""


@pytest.mark.parametrize(("n", "told"), [(1, "('__main__', 1) 1"), (3, "('__worker__', 2) 2")])
def test_all_other_ranks_are_workers(tmp_path: Path, n: int, told: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(SHARED)
    done = run("-n", str(n), "-m", "mpi4py.futures", str(path))
    assert done.stdout == f"{told}\n", done
    assert done.returncode == 4


# ---- futures of futures ----


def test_collect_and_compose() -> None:
    parts = [futures.Future[int]() for _ in range(3)]
    whole = futures.collect(parts)
    doubled = futures.compose(whole, lambda found: [2 * one for one in found])
    for number, part in enumerate(parts):
        assert not whole.done()
        part.set_result(number)
    assert whole.result() == [0, 1, 2] and doubled.result() == [0, 2, 4]
    parts = [futures.Future[int]() for _ in range(2)]
    whole = futures.collect(parts)
    parts[1].set_exception(KeyError("x"))
    assert isinstance(whole.exception(), KeyError) and parts[0].cancelled()
    mended = futures.compose(whole, None, lambda error: "mended")
    assert mended.result() == "mended"
    assert futures.collect([]).result() == []


def test_chains() -> None:
    first = ThenableFuture()
    last = first.then(lambda x: x + 1).then(lambda x: 1 / 0).catch(lambda error: "caught")
    first.set_result(1)
    assert last.result() == "caught"
    first = ThenableFuture()
    circle: Any = first.then(lambda _: circle)
    first.set_result(1)
    with pytest.raises(RuntimeError, match="cycle"):
        circle.result()
