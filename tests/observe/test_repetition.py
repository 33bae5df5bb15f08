"""Livelocks and starving processes are suspected, and programs that go on are not."""

from __future__ import annotations

import contextlib
import itertools
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Endpoint
from sfm_kernel.endpoint.callbacks import Callback
from sfm_kernel.endpoint.variables import variables
from sfm_kernel.observe import DeadlockMonitor, deadlocks, repetition
from tests.contract.conftest import Background
from tests.observe.harness import running

LASTING = 0.4


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repetition, "LASTING", LASTING)
    monkeypatch.setattr(deadlocks, "SELDOM", LASTING / 8)


# ---- a livelock, and a process that starves ----


def after_you(sfm: Endpoint) -> None:
    sfm.send(dest=1 - sfm.rank, say="after you")
    while True:
        if sfm.recv(src=1 - sfm.rank).say == "thanks":  # receive
            break
        time.sleep(0.001)
        sfm.send(dest=1 - sfm.rank, say="after you")  # send


def change_minds(sfm: Endpoint) -> None:
    """Both change their minds at the same time."""
    mine = True
    while True:
        sfm.send(dest=1 - sfm.rank, mine=mine)
        if sfm.recv(src=1 - sfm.rank).mine != mine:
            break
        mine = not mine


def serve_others(sfm: Endpoint) -> None:
    """The server counts whom it serves, and forgets one kind of request."""
    if sfm.rank == 0:
        for nth in itertools.count():
            request = sfm.recv(kind="fast")
            sfm.send(dest=request.src, nth=nth)
    kind = "fast" if sfm.rank == 1 else "slow"
    while True:
        sfm.send(dest=0, kind=kind)
        sfm.recv(src=0)


def suspect(program: Callable[[Endpoint], None], n: int) -> dict[str, Any]:
    with running(program, n) as run:
        monitor, found = DeadlockMonitor(run.folder), None
        while found is None:
            found = monitor.check()
            time.sleep(0.02)
        assert (found["verdict"], found["stuck"], found["but_for"]) == ("running", [], None)
        return found


def test_the_same_for_ever() -> None:
    found = suspect(after_you, 2)
    first = after_you.__code__.co_firstlineno
    here = [f"test_repetition.py, line {first + nth} (after_you)" for nth in (3, 6)]
    assert found["title"] == "Perhaps a livelock: 0 and 1 repeat the same for ever"
    assert found["sentences"][0].startswith(
        f"0 receives from 1 in {here[0]} and sends (say='after you') to 1 in {here[1]}, again and "
        "again, for "
    )
    last = "If no message and no variable ever changes, 0 and 1 go on like this for ever."
    assert found["sentences"][-1] == last


def test_few_values_in_turns() -> None:
    assert suspect(change_minds, 2)["title"].startswith("Perhaps a livelock: 0 and 1 ")


def test_one_starves() -> None:
    found = suspect(serve_others, 3)
    assert found["title"] == "Perhaps 2 starves: 0 receives other messages all the time"
    (starving,) = (text for text in found["sentences"] if text.startswith("2 waits for "))
    assert "Its message (kind='slow') lies in 0's inbox, and 0 has received " in starving


# ---- programs that go on ----


def count(sfm: Endpoint) -> None:
    for _ in range(1 << 60):
        sfm.send(dest=1 - sfm.rank, x=1)
        sfm.recv(src=1 - sfm.rank)


def until_later(sfm: Endpoint) -> None:
    end = time.monotonic() + 1000
    while time.monotonic() < end:
        sfm.send(dest=1 - sfm.rank, x=1)
        sfm.recv(src=1 - sfm.rank)


def serve(sfm: Endpoint) -> None:
    """Neither has a way out of its loop."""
    while True:
        if sfm.rank == 0:
            request = sfm.recv(tag="get")
            sfm.send(dest=request.src, value=42)
        else:
            sfm.send(dest=0, tag="get")
            sfm.recv(src=0)


def finish_early(sfm: Endpoint) -> None:
    """Rank 2 has done its share, and rank 0 comes to its message when all tasks are done."""
    if sfm.rank == 0:
        for _ in range(1 << 60):
            sfm.send(dest=sfm.recv(tag="result").src, task=1)
        sfm.recv(tag="bye")
    for _ in range(1 << 60 if sfm.rank == 1 else 3):
        sfm.send(dest=0, tag="result")
        sfm.recv(src=0)
    sfm.send(dest=0, tag="bye")
    sfm.recv(src=0, tag="end")


@pytest.mark.parametrize(
    ("program", "n"), [(count, 2), (until_later, 2), (serve, 2), (finish_early, 3)]
)
def test_a_program_that_goes_on_is_not_suspected(
    program: Callable[[Endpoint], None], n: int
) -> None:
    with running(program, n) as run:
        monitor, end = DeadlockMonitor(run.folder), time.monotonic() + 4 * LASTING
        while time.monotonic() < end:
            assert monitor.check() is None
            time.sleep(0.02)


# ---- variables ----


class Counter:
    def __init__(self) -> None:
        self.n = 0


def changes() -> Iterator[tuple[Any, Callable[[Any], object]]]:
    yield [1], lambda known: known.append(2)
    yield deque([1]), lambda known: known.append(2)
    yield {"n": [1]}, lambda known: known["n"].append(2)
    yield Counter(), lambda known: setattr(known, "n", known.n + 1)
    yield iter(range(5)), next
    yield itertools.count(), next
    yield itertools.repeat(None, 5), next
    yield np.zeros(5), lambda known: known.fill(1)


def seen(value: Any, read: Callable[[Any], int] = lambda _: variables()) -> int:
    """The number of the variables of ``read(value)``; its callers are functions of this package."""
    found: queue.SimpleQueue[int] = queue.SimpleQueue()
    callbacks: Any = None
    Callback(callbacks, lambda known: found.put(read(known)), {}).run(value)
    return found.get()


@pytest.mark.parametrize(("value", "change"), [*changes()], ids=lambda value: type(value).__name__)
def test_a_change_is_seen(value: Any, change: Callable[[Any], object]) -> None:
    before, again = seen(value), seen(value)
    change(value)
    assert before == again != 0
    assert seen(value) not in (0, before)


def test_what_is_too_large_or_looks_at_the_time_cannot_be_told() -> None:
    assert seen([[[*range(30)] for _ in range(30)] for _ in range(30)]) == 0
    assert seen(None, lambda _: variables() if time.time() else 1) == 0


Note = Callable[[], object]


def served_for_ever(note: Note) -> None:
    while True:
        with contextlib.suppress(KeyError):
            for _ in range(3):
                note()


def with_a_break(note: Note) -> None:
    while True:
        if note():
            break


def with_an_error_as_its_end(note: Note) -> None:
    while True:
        try:
            note()
        except KeyError:
            break


def with_a_condition(note: Note) -> None:
    while note:
        note()


@pytest.mark.parametrize(
    "program", [served_for_ever, with_a_break, with_an_error_as_its_end, with_a_condition]
)
def test_loops_without_an_end(program: Callable[[Note], None]) -> None:
    found = []

    def note() -> None:
        found.append(variables() & 1)
        raise EOFError

    with pytest.raises(EOFError):
        Background(lambda: program(note)).result()
    assert found == [program is served_for_ever]
