"""A deadlock is proven when the same calls were stuck all the time; then the calls are ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import DeadlockDetected, Endpoint, _native
from sfm_kernel._native import JUDGEMENT_BYTES
from sfm_kernel.observe import deadlocks as watching
from sfm_kernel.observe import snapshot
from sfm_kernel.observe.deadlocks import DeadlockMonitor, DeadlockReporter, end_calls, shortened
from sfm_kernel.observe.explain import Graph
from tests.contract.conftest import Background
from tests.observe.pictures import NOW, Dict, idle, other, picture, polls, process, recv, uid
from tests.waiting import wait_until

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


def looks(world: World, **options: Any) -> list[str]:
    """The titles that a reporter reports in ten seconds."""
    titles: list[str] = []
    watch = DeadlockMonitor("/nowhere", 2.0, clock=lambda: world.time)
    lookout = DeadlockReporter(
        watch, lambda text: titles.append(text.partition("\n")[0]), **options
    )
    for _ in range(20):
        world.time += 0.5
        lookout.check()
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


# ---- the end of calls, in a real one ----


@pytest.fixture
def alone(world: str) -> Iterator[Endpoint]:
    """The only process of a world of one."""
    with sfm_kernel.join(world, "A", size=1) as endpoint:
        yield endpoint


def blocked(endpoint: Endpoint, call: Callable[[], Any]) -> tuple[Background, Dict]:
    """Start a call in another thread; return the process's state once the call waits."""
    background = Background(call)
    wait_until(lambda: snapshot(endpoint)["processes"][0]["wait"] is not None)
    found: Dict = snapshot(endpoint)["processes"][0]
    return background, found


def judgement(process: Dict, *sentences: str, call: int | None = None, **more: Any) -> Dict:
    """A diagnosis that finds this process stuck."""
    judged = {"uid": process["uid"], "name": process["name"], "verdict": "stuck"}
    judged |= {"call": process["call"] if call is None else call, "text": "A waits."}
    return {
        "cycle": [],
        "stuck": ["A"],
        "title": "Deadlock: A waits for itself",
        "sentences": list(sentences),
        "processes": [judged],
        **more,
    }


def test_a_call_ends_with_the_whole_diagnosis(alone: Endpoint) -> None:
    call, process = blocked(alone, lambda: alone.recv(src="A", tag=1))
    assert end_calls(alone.folder, judgement(process, "One.", "Two.")) == ["A"]
    with pytest.raises(DeadlockDetected) as failure:
        call.result()
    assert str(failure.value) == "Deadlock: A waits for itself.\nOne.\nTwo."
    assert failure.value.cycle == ["A"]


def test_a_brief_end_names_the_process_of_the_call(alone: Endpoint) -> None:
    call, process = blocked(alone, lambda: alone.recv(src="A", tag=1))
    assert end_calls(alone, judgement(process, "One.", "Two."), brief=True) == ["A"]
    with pytest.raises(DeadlockDetected, match=r"^Deadlock: A waits for itself\.\nA waits\.$"):
        call.result()


def test_a_call_that_came_after_it_goes_on(alone: Endpoint) -> None:
    """The diagnosis was of an earlier call."""
    call, process = blocked(alone, lambda: alone.recv(tag=1))
    old = judgement(process)
    alone.send(dest="A", tag=1)
    call.result()
    call, process = blocked(alone, lambda: alone.recv(tag=1))
    assert process["call"] > old["processes"][0]["call"]
    assert end_calls(alone, old) == []
    assert end_calls(alone, judgement(process, call=process["call"] + 1)) == []
    time.sleep(0.3)  # three times as long as a judged call needs to notice it
    assert call.is_alive()
    alone.send(dest="A", tag=1, n=5)
    assert call.result().n == 5


def test_processes_that_are_not_stuck_are_left_alone(alone: Endpoint) -> None:
    call, process = blocked(alone, lambda: alone.recv(tag=1))
    found = judgement(process)
    found["processes"][0]["verdict"] = "waits"
    assert end_calls(alone, found) == []
    alone.send(dest="A", tag=1)
    call.result()


def test_it_is_harmless_when_the_process_has_gone(world: str) -> None:
    with sfm_kernel.join(world, "A", size=1) as endpoint:
        call, process = blocked(endpoint, lambda: endpoint.recv(tag=1))
        found = judgement(process)
        endpoint.send(dest="A", tag=1)
        call.result()
        with sfm_kernel.join(world, "other", guest=True) as other:
            endpoint.close()
            assert end_calls(other.folder, found) == []


_STUCK = """
import sys
import sfm_kernel
with sfm_kernel.join(sys.argv[1], "B") as sfm:
    try:
        sfm.recv(tag="end")
    except sfm_kernel.DeadlockDetected:
        print("ended;", sfm.recv(tag="end").src, "is heard by the next call")
"""


def test_a_message_after_the_judgement_is_not_for_the_judged_call(alone: Endpoint) -> None:
    """Another process of the deadlock may have gone on before this process wakes up."""
    command = [sys.executable, "-c", _STUCK, alone.world]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        alone.wait_for("B")

        def seen() -> Dict:
            (found,) = (
                process for process in snapshot(alone)["processes"] if process["name"] == "B"
            )
            return found

        wait_until(lambda: seen()["wait"] is not None)
        process = seen()
        other.send_signal(signal.SIGSTOP)
        wait_until(lambda: "(stopped)" in Path(f"/proc/{other.pid}/status").read_text())
        found = judgement(process)
        found["processes"][0]["name"] = "B"
        assert end_calls(alone.folder, found) == ["B"]
        alone.send(dest="B", tag="end")
        other.send_signal(signal.SIGCONT)
        assert other.stdout is not None
        assert other.stdout.read() == "ended; A is heard by the next call\n"


def test_messages_stay_where_they_are(alone: Endpoint) -> None:
    alone.send(dest="A", tag=3)
    call, process = blocked(alone, lambda: alone.recv(tag=1))
    end_calls(alone, judgement(process))
    with pytest.raises(DeadlockDetected):
        call.result()
    assert alone.recv(5, tag=3).tag == 3

    alone.send(dest="A", tag=4)
    call, process = blocked(alone, lambda: alone.with_buffering(1).send(dest="A", tag=5))
    end_calls(alone, judgement(process))
    with pytest.raises(DeadlockDetected):
        call.result()
    assert alone.recv(5, tag=4).tag == 4
    assert not alone.peek(), "it was not sent"

    call, process = blocked(alone, lambda: alone.with_buffering(0).send(dest="A", tag=6))
    end_calls(alone, judgement(process))
    with pytest.raises(DeadlockDetected):
        call.result()
    assert alone.recv(5).tag == 6, "it was sent, and not received"
    alone.with_buffering(1).send(dest="A", tag=7)  # there is room again
    assert alone.recv(5).tag == 7


@pytest.mark.parametrize(
    ("count", "length"), [(100, 60), (2, 5000), (2000, 10)], ids=["many", "long", "short"]
)
def test_a_long_diagnosis_is_cut_at_a_line(alone: Endpoint, count: int, length: int) -> None:
    sentences = [f"{nth} → ".ljust(length, "é") for nth in range(count)]
    call, process = blocked(alone, lambda: alone.recv(tag=1))
    end_calls(alone, judgement(process, *sentences))
    with pytest.raises(DeadlockDetected) as failure:
        call.result()
    title, *lines, rest = str(failure.value).splitlines()
    assert title == "Deadlock: A waits for itself."
    assert lines == sentences[: len(lines)]
    assert rest == f"… and {count - len(lines)} more lines"
    assert failure.value.cycle == ["A"]


def test_a_long_cycle_is_told(alone: Endpoint) -> None:
    """Sixty processes with names of the maximal length."""
    cycle = [f"{nth:é>64}" for nth in range(60)]
    call, process = blocked(alone, lambda: alone.recv(tag=1))
    title = f"Deadlock: {' → '.join(cycle)}"
    end_calls(alone, judgement(process, "One.", cycle=cycle, title=title))
    with pytest.raises(DeadlockDetected) as failure:
        call.result()
    assert str(failure.value).startswith(f"Deadlock: {cycle[0]}")
    assert failure.value.cycle[0] == cycle[0]


# ---- the length of judgements ----


def test_a_segment_has_room_for_the_longest_judgement(alone: Endpoint) -> None:
    """The limit is the core's: it would cut a longer text, and the rest would be no JSON."""
    path = str(Path(alone.folder) / f"{alone.uid}.seg")
    for more in (0, 1):
        call, process = blocked(alone, lambda: alone.recv(tag=1))
        judgement = json.dumps({"cycle": ["A"], "why": ""})
        judgement = judgement[:-2] + "x" * (JUDGEMENT_BYTES - len(judgement) + more) + '"}'
        assert _native.judge(path, process["call"], judgement)
        with pytest.raises(DeadlockDetected) as failure:
            call.result()
        assert failure.value.cycle == ([] if more else ["A"])


@pytest.mark.parametrize(
    "cycle", [["A", 1], ["\x00" * 64] * 60, ["é" * 5000] * 3], ids=["short", "many", "long"]
)
def test_a_judgement_that_is_too_long_is_shortened(cycle: list[Any]) -> None:
    for count, length in ((0, 10), (1, 20_000), (500, 30), (3, 3000)):
        why = "\n".join(["title" * 100, *["é" * length] * count])
        judgement = json.dumps({"cycle": cycle, "why": why}, ensure_ascii=False)
        short = shortened(judgement)
        assert len(short.encode()) <= JUDGEMENT_BYTES
        found = json.loads(short)
        assert found["why"].startswith("title") and str(found["cycle"][0]) in str(cycle[0])
        if len(judgement.encode()) <= JUDGEMENT_BYTES:
            assert short == judgement
        assert shortened(short) == short
