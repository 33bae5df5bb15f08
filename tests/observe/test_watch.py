"""A deadlock is proven when the same calls were stuck all the time; then it is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfm_kernel.observe import deadlocks as watching
from sfm_kernel.observe.deadlocks import DeadlockMonitor, DeadlockReporter
from sfm_kernel.observe.explain import Graph, repetition
from tests.observe.pictures import NOW, Dict, idle, other, picture, polls, process, recv, uid

# ---- proof, in a made-up world ----


class World:
    """The made-up world that a monitor sees, and its clock."""

    def __init__(self, *processes: Dict) -> None:
        self.processes = list(processes)
        self.time = 0.0
        self.looks = 0
        self.next_call = False

    def calls(self, *_: Any) -> dict[str, tuple[int, str]]:
        for one in self.processes if self.next_call else ():
            one["call"] += 1
        shown = picture(*self.processes)["processes"]
        return {process["uid"]: (process["call"], process["state"]) for process in shown}

    def look(self, *_: Any) -> Graph:
        self.looks += 1
        return Graph(picture(*self.processes))


@pytest.fixture
def world_of_two(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(recv("A", "B"), recv("B", "A"), process("C"))
    monkeypatch.setattr(watching, "calls", world.calls)
    monkeypatch.setattr(watching, "look", world.look)
    monkeypatch.setattr(watching, "Traces", lambda _: None)
    monkeypatch.setattr(repetition, "segments", lambda _: {})
    return world


Look = Callable[..., bool]


@pytest.fixture
def look(world_of_two: World) -> Look:
    """``look(after=seconds)``: whether a monitor that requires 2 s of proof has it then."""
    watch = DeadlockMonitor("/nowhere", 2.0, clock=lambda: world_of_two.time)
    found = None

    def look(after: float = 0.5) -> bool:
        nonlocal found
        world_of_two.time += after
        found = watch.check()
        return found is not None

    return look


def looks_until_proven(look: Look) -> int:
    """The number of checks, 0.5 s apart, that a proof takes from now on."""
    for nth in range(1, 20):
        if look():
            return nth
    return 0


WHOLE = 4
"""Checks of a proof, after the check that saw the deadlock first."""


def test_it_is_proven_after_a_while(look: Look, world_of_two: World) -> None:
    waits, world_of_two.processes[1] = world_of_two.processes[1], process("B")
    assert not look(after=2.0)
    world_of_two.processes[1] = waits
    assert looks_until_proven(look) == WHOLE + 1
    assert look(), "and stays so"


def test_one_that_is_older_than_the_monitor_is_proven_once_it_is_confirmed(
    look: Look, world_of_two: World
) -> None:
    for one in world_of_two.processes:
        one["since"] -= 100.0
    assert not look(after=2.0)
    assert looks_until_proven(look) == 1


def test_the_diagnosis_is_given(world_of_two: World) -> None:
    watch = DeadlockMonitor("/nowhere", 0.0, clock=lambda: world_of_two.time)
    found = [watch.check() for _ in range(5)][-1]
    assert found is not None and found["cycle"] == ["A", "B"]


CHANGES: dict[str, Callable[[World], object]] = {
    "another call of the same kind": lambda world: world.processes[1].update(call=8),
    "one more is stuck": lambda world: world.processes.__setitem__(2, recv("C", "A")),
    "no longer certain": lambda world: world.processes[1].update(settled=False),
    "one computes": lambda world: world.processes[1].update(process("B")),
    "all compute": lambda world: [world.processes[n].update(process("AB"[n])) for n in range(2)],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_begins_it_anew(
    look: Look, world_of_two: World, change: Callable[[World], object]
) -> None:
    assert looks_until_proven(look)
    before = [dict(process) for process in world_of_two.processes]
    change(world_of_two)
    assert not look()
    world_of_two.processes[:] = before
    assert looks_until_proven(look) > WHOLE, "nothing is left of the first proof"


def test_a_deadlock_after_a_change_is_proven_as_well(look: Look, world_of_two: World) -> None:
    assert looks_until_proven(look)
    CHANGES["one more is stuck"](world_of_two)
    assert looks_until_proven(look) == WHOLE + 1


def test_a_pause_begins_it_anew(look: Look) -> None:
    """The monitor has not seen the time in between."""
    assert looks_until_proven(look)
    assert not look(after=60.0)
    assert looks_until_proven(look) == WHOLE


def test_a_world_in_which_nobody_stays_in_a_call_is_looked_at_seldom(
    look: Look, world_of_two: World
) -> None:
    world_of_two.processes[:] = [process("A"), idle("B"), process("C")]
    assert not looks_until_proven(look)
    assert world_of_two.looks <= 10, "one look each second"


# ---- reports, in the same world ----


def looks(world: World, of: str = "", **options: Any) -> list[str]:
    """The titles that a reporter reports in ten seconds; ``of``: of deadlocks of this process."""
    titles: list[str] = []
    watch = DeadlockMonitor("/nowhere", 2.0, clock=lambda: world.time)
    lookout = DeadlockReporter(
        watch, lambda text: titles.append(text.partition("\n")[0]), **options
    )
    for _ in range(20):
        world.time += 0.5
        lookout.check(of)
    return titles


RING = "Deadlock: A → B → A."


def test_each_is_told_once(world_of_two: World) -> None:
    assert looks(world_of_two) == [RING]
    assert looks(world_of_two, of=uid("A")) == [RING]
    assert looks(world_of_two, of=uid("C")) == [], "it is no part of that"


def test_a_deadlock_but_for_a_thread_is_reported_too(world_of_two: World) -> None:
    since = NOW - 10
    world_of_two.processes[0].update(others=[other("beat")], since=since)
    world_of_two.processes[1].update(since=since)
    ended: list[Dict] = []
    titles = looks(world_of_two, end=lambda found: ended.append(found) or [])
    assert titles == ["It would be a deadlock but for A's thread 'beat': A → B → A."]
    assert not ended


def test_processes_that_only_poll_are_reported_though_each_call_ends(world_of_two: World) -> None:
    long_ago = polls(since=NOW - 10)
    calls = [{"state": "blocked in recv"}, {}, {}]
    world_of_two.processes[:] = [
        process(name, **(call | long_ago)) for name, call in zip("ABC", calls, strict=True)
    ]
    world_of_two.next_call = True
    (title,) = looks(world_of_two)
    assert title.startswith("It would be a deadlock but for A's calls of recv_nb(tag=2, src='A'), ")


def test_ended_calls_are_reported_unless_their_errors_say_it(world_of_two: World) -> None:
    assert looks(world_of_two, end=lambda _: []) == [], "the calls were over already"
    assert looks(world_of_two, end=lambda _: ["A"])[:1] == [RING]
    assert looks(world_of_two, end=lambda _: ["A"], quiet=True) == []
