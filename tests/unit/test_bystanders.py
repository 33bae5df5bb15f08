"""The parts of a program that could go on while one of its threads is blocked."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import functools
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tornado.ioloop import IOLoop, PeriodicCallback

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel._native import stacks
from sfm_kernel.collectives import meeting, team
from sfm_kernel.endpoint import bystanders as present
from sfm_kernel.endpoint import callbacks, main_thread
from sfm_kernel.endpoint.bystanders import FUTURES, begin_cell, bystanders
from sfm_kernel.endpoint.main_thread import main_line
from sfm_kernel.endpoint.weak import listed
from tests.waiting import wait_until


def reported(**options: Any) -> list[list[Any]]:
    """The reported bystanders, without those of the tests' own process."""
    found = json.loads(bystanders(**options) or "[]")
    return [bystander for bystander in found if bystander not in _of_the_tests]


@pytest.fixture(autouse=True)
def _others() -> Iterator[None]:
    global _of_the_tests
    _of_the_tests = json.loads(bystanders() or "[]")
    yield
    begin_cell(None)


_of_the_tests: list[Any] = []


@pytest.mark.parametrize(
    ("held", "look"),
    [
        (meeting._tables, meeting._hooks),
        (team._teams, team._hooks),
        (callbacks._owners, callbacks.registered),
    ],
)
def test_groups_and_endpoints_are_made_meanwhile(held: Any, look: Callable[[], Any]) -> None:
    """Once a second thread of a process made a group while a call of the first began to wait."""

    class Thing(dict[str, Any]):
        __hash__ = object.__hash__  # type: ignore[assignment]
        on_wait, active = None, False

    def make() -> None:
        while not over.is_set():
            things = [Thing() for _ in range(200)]
            for thing in things:
                held.setdefault(thing, thing) if hasattr(held, "setdefault") else held.add(thing)
            for thing in things:
                held.pop(thing) if hasattr(held, "setdefault") else held.discard(thing)

    over, interval = threading.Event(), sys.getswitchinterval()
    kept = Thing()
    held.setdefault(kept, kept) if hasattr(held, "setdefault") else held.add(kept)
    maker = threading.Thread(target=make)
    maker.start()
    sys.setswitchinterval(1e-6)
    try:
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            assert kept in listed(held.values if hasattr(held, "values") else held.copy)
            list(look())
    finally:
        sys.setswitchinterval(interval)
        over.set()
        maker.join()
        held.pop(kept) if hasattr(held, "setdefault") else held.discard(kept)


def test_a_pool_is_none_while_it_has_nothing_to_do() -> None:
    over = threading.Event()
    with ThreadPoolExecutor(1, "pool") as pool:
        pool.submit(int).result()
        wait_until(lambda: reported() == [])
        pool.submit(over.wait)
        wait_until(lambda: [bystander[1] for bystander in reported()] == ["pool_0"])
        over.set()
        wait_until(lambda: reported() == [])


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
    assert [bystander[1] for bystander in reported()] == ["worker"] and not called
    over.set()
    worker.join()


def test_a_program_does_not_notice_that_its_frames_are_read() -> None:
    """It does not crash, and nothing of it lives longer: its own thread runs its finalizers."""
    program = [sys.executable, "-m", "tests.unit.looked_at"]
    ended = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "MainThread\n", "")


def test_a_blocked_process_seldom_looks_for_bystanders_also_while_it_is_observed() -> None:
    """Observers wake only its network thread, which runs nothing of the program."""
    (looks,) = sfm_kernel.run(_blocked, n=1)
    # One at once, one each second, some beside other threads of a busy machine; one each time that
    # it is observed were 8 more.
    assert 0 < looks < 8


def _blocked(sfm: Endpoint) -> int:
    looks: list[float] = []

    def look() -> list[Callable[..., Any]]:
        looks.append(time.monotonic())
        return []

    present.hooks.append(look)
    with contextlib.suppress(sfm_kernel.RecvTimeout):
        sfm.recv(2)
    return len(looks)


def test_a_thread_left_by_an_earlier_cell_is_reported_with_that_cell() -> None:
    begin_cell(3)
    timer = threading.Timer(60, reported)
    timer.start()
    (bystander,) = reported()
    assert bystander[0] == "thread" and "reported" in bystander[2] and bystander[4] is None
    assert reported(over=True)[0][4] == 3
    begin_cell(4)
    assert reported()[0][4] == 3
    timer.cancel()
    timer.join()
    assert reported() == []


def test_handlers_of_signals() -> None:
    former = signal.signal(signal.SIGUSR1, lambda *_: None)
    assert [bystander[:2] for bystander in reported()] == [["signal", "SIGUSR1"]]
    signal.signal(signal.SIGUSR1, signal.default_int_handler)
    assert reported() == []
    signal.signal(signal.SIGUSR1, former)


def test_who_could_release_a_lock_that_the_main_thread_waits_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the thread that receives an executor's results, but one of the program's."""
    threads_of = present.acting_threads

    def threads(blocked: set[int], idle: bool) -> Any:
        """Of this test: what runs tests has others, which are not all known to ``threading``."""
        return threads_of(blocked | set(stacks()) - {receiver.ident, other.ident}, idle)

    monkeypatch.setattr(main_thread, "handlers_of_signals", lambda: ())
    monkeypatch.setattr(main_thread, "acting_threads", threads)
    over, end, found = threading.Event(), threading.Event(), []
    receiver = threading.Thread(target=end.wait, name=FUTURES)
    other = threading.Thread(target=end.wait, args=(1000,))  # one without a limit is asleep, too

    def is_held() -> bool:
        line = main_line()
        return line is not None and line[3]

    def look() -> None:
        try:
            wait_until(is_held)  # by `over`, which only this thread, the observer, sets
            other.start()
            found.append(is_held())
        finally:
            end.set()
            over.set()

    looking = threading.Thread(target=look)
    for thread in (receiver, looking):
        thread.start()
    over.wait()
    for thread in (receiver, looking, other):
        thread.join()
    assert found == [False]


def test_handlers_of_native_code() -> None:
    libc, kind = ctypes.CDLL(None), ctypes.CFUNCTYPE(None, ctypes.c_int)
    handler = kind(lambda _: None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    former = libc.signal(signal.SIGALRM, ctypes.cast(handler, ctypes.c_void_p))
    signal.setitimer(signal.ITIMER_REAL, 1000)
    assert [bystander[:2] for bystander in reported()] == [["signal", "SIGALRM"]]
    signal.setitimer(signal.ITIMER_REAL, 0)
    libc.signal(signal.SIGALRM, former)
    faulthandler.register(signal.SIGUSR2)  # it prints where the program is, and no more
    assert reported() == []
    faulthandler.unregister(signal.SIGUSR2)


def beat() -> None:
    """The function that timers call."""


@pytest.mark.parametrize("function", [beat, functools.partial(beat)])
def test_timers_and_tasks_of_a_loop(function: Callable[[], None]) -> None:
    def names() -> list[str]:
        current = asyncio.current_task()
        assert current is not None
        shown = reported(loop=asyncio.get_running_loop())
        assert all(bystander[0] == "task" for bystander in shown)
        return [bystander[1] for bystander in shown if bystander[1] != current.get_name()]

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
