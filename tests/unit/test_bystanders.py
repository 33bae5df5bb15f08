"""The parts of a program that could go on while one of its threads is blocked."""

from __future__ import annotations

import asyncio
import functools
import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tornado.ioloop import IOLoop, PeriodicCallback

from sfm_kernel.endpoint.bystanders import begin_cell, bystanders
from tests.waiting import wait_until


def told(**options: Any) -> list[list[Any]]:
    """The reported bystanders, without those of the tests' own process."""
    found = json.loads(bystanders(**options) or "[]")
    return [one for one in found if one not in _of_the_tests]


@pytest.fixture(autouse=True)
def _others() -> Iterator[None]:
    global _of_the_tests
    _of_the_tests = json.loads(bystanders() or "[]")
    yield
    begin_cell(None)


_of_the_tests: list[Any] = []


def test_a_pool_is_none_while_it_has_nothing_to_do() -> None:
    over = threading.Event()
    with ThreadPoolExecutor(1, "pool") as pool:
        pool.submit(int).result()
        wait_until(lambda: told() == [])
        pool.submit(over.wait)
        wait_until(lambda: [one[1] for one in told()] == ["pool_0"])
        over.set()
        wait_until(lambda: told() == [])


def test_a_thread_is_asked_nothing() -> None:
    """Its attributes are the program's."""
    over, called = threading.Event(), []

    class Worker(threading.Thread):
        def work(self) -> str:
            called.append(self)
            return ""

        def run(self) -> None:
            over.wait()

    worker = Worker(name="worker")
    worker.start()
    assert [one[1] for one in told()] == ["worker"] and not called
    over.set()
    worker.join()


def test_a_thread_left_by_an_earlier_cell_is_reported_with_that_cell() -> None:
    begin_cell(3)
    timer = threading.Timer(60, told)
    timer.start()
    (one,) = told()
    assert one[0] == "thread" and "told" in one[2] and one[4] is None
    assert told(over=True)[0][4] == 3
    begin_cell(4)
    assert told()[0][4] == 3
    timer.cancel()
    timer.join()
    assert told() == []


def test_handlers_of_signals() -> None:
    former = signal.signal(signal.SIGUSR1, lambda *_: None)
    assert [one[:2] for one in told()] == [["signal", "SIGUSR1"]]
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    assert told() == []
    signal.signal(signal.SIGUSR1, former)


def beat() -> None:
    """The function that timers call."""


@pytest.mark.parametrize("function", [beat, functools.partial(beat)])
def test_timers_and_tasks_of_a_loop(function: Callable[[], None]) -> None:
    def names() -> list[str]:
        mine = asyncio.current_task()
        assert mine is not None
        shown = told(loop=asyncio.get_running_loop())
        assert all(one[0] == "task" for one in shown)
        return [one[1] for one in shown if one[1] != mine.get_name()]

    async def main() -> None:
        assert names() == []
        timer = asyncio.get_running_loop().call_later(60, function)
        assert names() == ["beat"]
        timer.cancel()
        assert names() == []
        tornado = IOLoop.current()
        timeout = tornado.call_later(60, function)
        assert names() == ["beat"]
        tornado.remove_timeout(timeout)
        periodic = PeriodicCallback(function, 60_000)
        periodic.start()
        assert names() == ["beat"]
        periodic.stop()
        task = asyncio.create_task(asyncio.sleep(60), name="sleeper")
        await asyncio.sleep(0)
        assert names() == ["sleeper"]
        task.cancel()

    asyncio.run(main())
