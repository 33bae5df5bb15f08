"""The number by which observers see whether a program's variables change."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from sfm_kernel.endpoint.bystanders import other_threads
from sfm_kernel.endpoint.callbacks import Callback
from sfm_kernel.endpoint.variables import answer, variables
from tests.contract.conftest import Background


class Counter:
    def __init__(self) -> None:
        self.n = 0

    def late(self) -> bool:
        return time.monotonic() >= self.n


class Slots:
    __slots__ = ("n", "unset")

    def __init__(self) -> None:
        self.n = 0


def counted() -> Iterator[None]:
    for _ in range(5):
        yield


def closure() -> Callable[[], int]:
    n = 0

    def further() -> int:
        nonlocal n
        n += 1
        return n

    return further


STATE = Counter()


def advance(_: object) -> None:
    STATE.n += 1


def changes() -> Iterator[tuple[Any, Callable[[Any], object]]]:
    yield [1], lambda known: known.append(2)
    yield deque([1]), lambda known: known.append(2)
    yield {"n": [1]}, lambda known: known["n"].append(2)
    yield Counter(), lambda known: setattr(known, "n", known.n + 1)
    yield iter(range(5)), next
    yield itertools.count(), next
    yield itertools.repeat(None, 5), next
    yield Slots(), lambda known: setattr(known, "n", known.n + 1)
    yield counted(), next
    yield closure(), lambda known: known()
    yield "a global", advance
    yield np.zeros(5), lambda known: known.fill(1)
    yield np.zeros((3, 4), order="F"), lambda known: known.fill(1)
    yield np.zeros(1 << 20), lambda known: known[500_000:600_000].fill(1)


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
    assert seen(np.zeros((1 << 10, 1 << 10))[:, ::2]) == 0
    assert seen(None, lambda _: variables() if time.time() else 1) == 0
    assert seen(Counter(), lambda known: known.late() and variables()) == 0
    assert seen(None, lambda _: variables() if itertools.repeat(None) else 1) == 0


def test_nobody_can_tell_beside_another_thread() -> None:
    end = threading.Event()
    before = other_threads()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert other_threads() and answer() == 0
    end.set()
    thread.join()
    assert other_threads() == before


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
