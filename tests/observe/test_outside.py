"""Processes that are in no call of this package: their main threads' activities and lines."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from sfm_kernel import Endpoint
from sfm_kernel.observe import explain, snapshot
from tests.observe.harness import running
from tests.observe.pictures import NOW, Dict, check, idle, judge, notebook, process, recv
from tests.waiting import wait_until


def compute() -> None:
    while True:
        sum(range(1000))


def type_in() -> None:
    os.dup2(os.pipe()[0], 0)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - that of the process is at its end
    input()


def lock() -> None:
    held = threading.Lock()
    with held:
        held.acquire()


def lock_for_a_while() -> None:
    threading.Event().wait(1000.0)


def sleep() -> None:
    time.sleep(1000)


def child() -> None:
    read, _ = os.pipe()
    subprocess.run(["cat"], stdin=read)  # which ends with this process


def pipe() -> None:
    os.read(os.pipe()[0], 1)


def native() -> None:
    re.match("(a*)*b", "a" * 200)  # some 2 ** 200 steps, in none of which the GIL is given back


def beside_a_thread() -> None:
    threading.Thread(target=compute, daemon=True).start()
    sleep()


def go(sfm: Endpoint, way: Callable[[], object]) -> None:
    if sfm.rank == 0:
        way()
    sfm.recv()


def line_of(way: Callable[[], object], nth: int) -> int:
    return way.__code__.co_firstlineno + nth


@pytest.mark.parametrize(
    ("does", "way", "nth", "words"),
    [
        ("computes", compute, 2, "0 computes in "),
        ("input", type_in, 3, "0 waits for input in "),
        ("lock", lock, 3, "0 waits for a lock in "),
        ("lock", lock_for_a_while, 1, "0 waits for a lock in "),
        ("sleep", sleep, 1, "0 sleeps in "),
        ("sleep", beside_a_thread, 1, "0 sleeps in "),
        ("child", child, 2, "0 waits for a process that it has started in "),
        ("system", pipe, 1, "0 waits for a file, a pipe or the network in "),
        ("native", native, None, "0 is in a C function that holds the GIL."),
    ],
)
def test_the_activity_of_a_process_and_its_line(
    does: str, way: Callable[[], object], nth: int | None, words: str
) -> None:
    inner = sleep if way is beside_a_thread else way
    seen: dict[str, Any] = {}

    def is_seen() -> bool:
        seen.update(snapshot(run.folder))
        check("snapshot", seen)
        now = seen["processes"][0]["now"]
        if now is None or now["does"] != does:
            return False
        return nth is None or now["where"]["function"].partition(",")[0] == inner.__name__

    with running(go, 2, way) as run:
        wait_until(lambda: run.process(1)["wait"])
        wait_until(is_seen)
        assert seen["processes"][1]["now"] is None, "it is in a call"
        now = seen["processes"][0]["now"]
        if nth is None:
            assert now == {"does": does, "where": None}
        elif does == "computes":
            assert now["where"]["line"] in (line_of(inner, 1), line_of(inner, nth))
        else:
            assert now["where"]["line"] == line_of(inner, nth)
        # On a busy machine not every snapshot shows it.
        wait_until(lambda: explain(run.folder)["processes"][0]["text"].startswith(words))
        check("diagnosis", explain(run.folder))


def nap(sfm: Endpoint) -> None:
    """Sleeps in a C function that keeps the GIL, and goes on without releasing it."""
    naps = defaultdict(functools.partial(ctypes.PyDLL(None).usleep, 30_000))
    for nth in itertools.count():
        naps[nth]
        for _ in range(100_000):
            pass


def test_the_activity_is_that_of_the_line() -> None:
    """The observer's thread waits for the GIL between the two, and the main thread goes on."""
    seen = set[tuple[str, int]]()

    def has_computed() -> bool:
        now = run.process(0)["now"]
        if now is not None and now["where"] is not None:
            seen.add((now["does"], now["where"]["line"]))
            looks.append(now["does"])
        return looks.count("computes") > 5

    looks: list[str] = []
    with running(nap, 1) as run:
        wait_until(has_computed)
    assert not {("sleep", line_of(nap, nth)) for nth in (5, 6)} & seen


def halt(sfm: Endpoint) -> None:
    """1 waits for a process that never joins."""
    if sfm.rank == 1:
        sfm.wait_for("logger")
    time.sleep(1000)


def test_a_stopped_process() -> None:
    with running(halt, 2) as run:
        wait_until(lambda: run.process(1)["wait"])
        where = f"test_outside.py, line {line_of(halt, 3)} (halt)"
        assert explain(run.folder)["processes"][1]["text"] == (
            f"1 is in wait_for('logger') and waits for logger in {where}. "
            "Nobody is named 'logger'; there are 0 and 1. "
            "That may end: a newcomer named 'logger' may still join."
        )
        run.signal(0, signal.SIGSTOP)
        wait_until(lambda: run.process(0)["now"] == {"does": "stopped", "where": None})
        found = explain(run.folder)
        does = "0 is stopped (SIGSTOP), and does nothing until somebody continues it."
        assert (found["title"], found["processes"][0]["text"]) == (
            "No deadlock is proven: 0 is stopped",
            does,
        )


@pytest.mark.parametrize(
    ("does", "title"),
    [
        (["input"], "P0 still waits for input"),
        (["stopped", None], "P0 and P1 still compute"),
        (["native"], "P0 is still in a C function that holds the GIL"),
        (["sleep", "sleep"], "P0 and P1 still sleep"),
        (["sleep", "lock"], "P0 and P1 still compute"),
    ],
)
def test_the_activities_of_several_processes(does: list[str | None], title: str) -> None:
    now = [activity and {"does": activity, "where": None} for activity in does]
    shown = [process(f"P{nth}", now=activity) for nth, activity in enumerate(now)]
    assert judge(recv("A", "P0"), *shown)["title"] == f"No deadlock: {title}"


def test_the_program_is_not_disturbed() -> None:
    """The observer reads its frames repeatedly while it computes and ends."""
    import sfm_kernel

    assert sfm_kernel.run(count, n=2) == [sum(range(200_000)), None]


def count(sfm: Endpoint) -> int | None:
    if sfm.rank == 0:
        sfm.send(dest=1)
        total = 0
        for number in range(200_000):
            total += number
        sfm.send(dest=1, done=True)
        return total
    sfm.recv()
    while not sfm.peek(done=True):
        snapshot(sfm)
    return None


NEWS = "nobody on its machine tells what it does (its relay has ended, or that machine is cut off)"


@pytest.mark.parametrize(
    ("last", "was"),
    [
        (idle("B"), "It was idle then."),
        (recv("B", "A"), "It waited for the text then."),
        (recv("B", "A", template={"tag": 1}, depth=1), "It waited for the text then."),
        (notebook("B", "A"), "It waited for "),
        (process("B"), ""),
    ],
    ids=["idle", "blocked", "with a template", "in a cell", "computes"],
)
def test_what_was_seen_long_ago_is_no_present(last: Dict, was: str) -> None:
    """Neither is B idle, nor does it compute; and A's wait may end."""
    found = judge(recv("A", "B"), last | {"unseen": NOW - 12, "here": False})
    check("diagnosis", found)
    assert found["verdict"] == "waiting" and not found["stuck"]
    assert found["title"] == "No deadlock is proven: B is not seen"
    (sentence,) = (text for text in found["sentences"] if text.startswith("B "))
    assert sentence.startswith(f"B has not been seen for 12 s: {NEWS}. {was}".rstrip())
    said = " ".join(found["sentences"])
    assert "comput" not in said and "is idle" not in said and "sends nothing" not in said


def test_others_are_told_beside_those_that_are_not_seen() -> None:
    unseen = {"unseen": NOW - 12, "here": False}
    found = judge(recv("A", "B"), process("B") | unseen, process("C"))
    assert found["title"] == "No deadlock: C still computes"
    found = judge(recv("A", "C"), idle("B") | unseen, recv("C", "A"))
    assert found["title"] == "Deadlock: A → C → A"
    assert "B has not been seen for 12 s" in " ".join(found["sentences"])
