"""``farm.Executor`` is what ``concurrent.futures`` says an executor is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import closing

import pytest

import sfm_kernel
from sfm_kernel import farm, serving
from sfm_kernel.errors import EncodeError, TaskFailed
from tests.river.tasks import square
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("forked"),
    pytest.mark.keeps("two workers for the whole module"),
]


@pytest.fixture(scope="module")
def two() -> Iterator[serving.LocalProcesses]:
    with closing(serving.LocalProcesses(2)) as started:
        yield started


@pytest.fixture
def pool(two: serving.LocalProcesses) -> Iterator[farm.Executor]:
    with farm.Executor(two.sfm) as found:
        yield found


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def slow_pid(_: int) -> int:
    time.sleep(0.1)
    return os.getpid()


def fail(what: str) -> None:
    raise KeyError(what)


def test_submit_with_all_kinds_of_arguments(pool: farm.Executor) -> None:
    assert pool.submit(pow, 2, 8).result() == 256
    assert pool.submit(int, "ff", base=16).result() == 255

    def names(self: int, fn: int, **others: int) -> tuple[int, int, dict[str, int]]:
        return self, fn, others

    assert pool.submit(names, self=1, fn=2, other=3).result() == (1, 2, {"other": 3})


def test_map_is_in_order_and_lazy_in_its_failures(pool: farm.Executor) -> None:
    assert list(pool.map(pow, range(10), range(10))) == [x**x for x in range(10)]
    assert list(pool.map(square, range(40), chunksize=7)) == [x * x for x in range(40)]
    results = pool.map(divmod, [5, 5], [2, 0])
    assert next(results) == (2, 1)
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_map_with_a_time_limit(pool: farm.Executor) -> None:
    assert pool.submit(square, 2).result() == 4  # the workers are at work
    results = pool.map(nap, [0.0, 4.0], timeout=2.0)
    assert next(results) == 0.0
    with pytest.raises(TimeoutError):
        next(results)


def test_an_error_of_a_call_keeps_its_type_and_its_traceback(pool: farm.Executor) -> None:
    error = pool.submit(fail, "that").exception()
    assert isinstance(error, KeyError) and error.args == ("that",)
    assert isinstance(error.__cause__, TaskFailed)
    assert "raise KeyError(what)" in str(error.__cause__), "with the remote traceback"
    lock = threading.Lock()
    with pytest.raises(TaskFailed, match="argument 1, a lock, cannot be sent"):
        pool.submit(square, lock).result()  # type: ignore[arg-type]
    with pytest.raises(EncodeError):
        pool.submit(lambda: lock)


def test_the_states_of_a_future(pool: farm.Executor) -> None:
    running = [pool.submit(nap, 0.5) for _ in range(2)]
    wait_until(lambda: all(future.running() for future in running))
    waiting = [pool.submit(nap, 0.0) for _ in range(20)]
    assert not running[0].cancel() and not running[0].done()
    assert waiting[-1].cancel() and waiting[-1].cancelled() and waiting[-1].done()
    with pytest.raises(futures.CancelledError):
        waiting[-1].result()
    assert [future.result() for future in waiting[:-1]] == [0.0] * 19
    called: list[futures.Future[float]] = []
    running[0].add_done_callback(called.append)
    assert running[0].result() == 0.5 and running[0].done()
    wait_until(lambda: called == [running[0]])


def test_wait_and_as_completed(pool: farm.Executor) -> None:
    some = [pool.submit(nap, 0.01 * n) for n in range(4)]
    assert {future.result() for future in futures.as_completed(some)} == {0.0, 0.01, 0.02, 0.03}
    slow, bad = pool.submit(nap, 1.0), pool.submit(fail, "it")
    done, left = futures.wait([slow, bad], return_when=futures.FIRST_EXCEPTION)
    assert done == {bad} and left == {slow}
    assert futures.wait([slow]).done == {slow}


def test_asyncio_awaits_it(pool: farm.Executor) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        wrapped = [asyncio.wrap_future(pool.submit(square, x)) for x in range(5)]
        return [*await asyncio.gather(*wrapped), await loop.run_in_executor(pool, square, 9)]

    assert asyncio.run(main()) == [0, 1, 4, 9, 16, 81]


def test_many_threads_submit(pool: farm.Executor) -> None:
    found: list[int] = []

    def some() -> None:
        found.extend(future.result() for future in [pool.submit(square, x) for x in range(50)])

    threads = [threading.Thread(target=some) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted([x * x for x in range(50)] * 4)


def test_shutdown_awaits_what_was_submitted(two: serving.LocalProcesses) -> None:
    pool = farm.Executor(two.sfm)
    some = [pool.submit(nap, 0.02) for _ in range(8)]
    pool.shutdown()
    assert all(future.done() for future in some)
    pool.shutdown()  # harmless
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        pool.submit(square, 1)


def test_shutdown_that_does_not_wait(two: serving.LocalProcesses) -> None:
    pool = farm.Executor(two.sfm)
    some = [pool.submit(nap, 0.1) for _ in range(3)]
    pool.shutdown(wait=False)
    assert [future.result() for future in some] == [0.1] * 3


def test_shutdown_that_cancels(two: serving.LocalProcesses) -> None:
    pool = farm.Executor(two.sfm)
    some = [pool.submit(nap, 0.3) for _ in range(20)]
    wait_until(some[0].running)
    pool.shutdown(cancel_futures=True)
    assert all(future.done() for future in some) and some[0].result() == 0.3
    assert some[-1].cancelled()


def test_a_farm_and_its_executor(two: serving.LocalProcesses) -> None:
    with farm.connect(two.sfm, [1]) as workers, farm.Executor(workers) as pool:
        (pid,) = workers.everywhere(os.getpid)
        assert pool.submit(lambda: sfm_kernel.join and os.getpid()).result() == pid


@pytest.mark.fault
def test_an_executor_whose_workers_die() -> None:
    with farm.Executor(2) as pool:
        pids: set[int] = set()
        while len(pids) < 2:
            pids |= set(pool.map(slow_pid, range(4)))
        some = [pool.submit(nap, 0.5) for _ in range(9)]
        for pid in pids:
            os.kill(pid, 9)
        errors = [future.exception() for future in some]
        assert isinstance(errors[-1], futures.BrokenExecutor)
        with pytest.raises(futures.BrokenExecutor, match="no worker lives"):
            pool.submit(square, 1)


def test_processes_of_its_own_end_with_it() -> None:
    with farm.Executor(2) as pool:
        pid = pool.submit(os.getpid).result()
        assert pid != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(ValueError, match="a number of processes is 1 or more, not 0"):
        farm.Executor(0)


def test_a_program_that_forgets_it_does_what_it_has_submitted() -> None:
    code = (
        "from sfm_kernel import farm\n"
        "pool = farm.Executor(1)\n"
        "pool.submit(abs, -7).add_done_callback(lambda one: print(one.result()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("7\n", "")
