"""The calls of a deadlock are ended with its diagnosis, and no others."""

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
from sfm_kernel.observe import snapshot
from sfm_kernel.observe.deadlocks import end_calls, shortened
from tests.contract.conftest import Background
from tests.observe.pictures import Dict
from tests.waiting import wait_until


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


def both(endpoint: Endpoint) -> Dict:
    """A diagnosis that finds A and B stuck, once both wait."""

    def seen() -> list[Dict]:
        return sorted(snapshot(endpoint)["processes"], key=lambda process: str(process["name"]))

    wait_until(lambda: all(process["wait"] for process in seen()))
    stuck = [judgement(process)["processes"][0] for process in seen()]
    return judgement(stuck[0], stuck=["A", "B"], processes=stuck)


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


def test_calls_end_after_all_are_judged(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wakes goes on at once, while the observer has lost its core to it."""
    judge = _native.judge

    def slowly(*args: Any) -> bool:
        is_meant = judge(*args)
        time.sleep(0.3)  # three times as long as a call rests at most
        return is_meant

    monkeypatch.setattr(_native, "judge", slowly)
    with sfm_kernel.join(world, "A", size=2) as a, sfm_kernel.join(world, "B") as b:

        def goes_on() -> None:
            with pytest.raises(DeadlockDetected):
                a.recv(src="B")
            a.send(dest="B", text="of the next cell")

        calls = [Background(goes_on), Background(lambda: b.recv(src="A"))]
        assert end_calls(a, both(a)) == ["A", "B"]
        calls[0].result()
        with pytest.raises(DeadlockDetected):
            calls[1].result()
        assert b.recv(src="A").text == "of the next cell"


def test_no_call_ends_if_one_of_them_is_over(world: str) -> None:
    with sfm_kernel.join(world, "A", size=2) as a, sfm_kernel.join(world, "B") as b:
        calls = [Background(lambda: a.recv(src="B")), Background(lambda: b.recv(src="A"))]
        found = both(a)
        a.send(dest="B", n=1)
        assert calls[1].result().n == 1
        assert end_calls(a, found) == []
        b.send(dest="A", n=2)
        assert calls[0].result().n == 2


def test_a_message_that_a_judged_call_has_just_taken_stays(alone: Endpoint) -> None:
    """The judgement came after the call had looked for it, and before the message."""
    found: Dict = {}

    def judged(_: Any) -> bool:
        return end_calls(alone, found) == ["A"]

    call, process = blocked(alone, lambda: alone.recv(n=judged))
    found |= judgement(process)
    alone.send(dest="A", n=5)
    with pytest.raises(DeadlockDetected):
        call.result()
    assert alone.recv(5).n == 5


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


def test_of_two_observers_one_ends_its_deadlock(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one has seen a larger deadlock, of which one call is over by now."""
    judge, others = _native.judge, []
    with sfm_kernel.join(world, "A", size=2) as a, sfm_kernel.join(world, "B") as b:
        calls = [Background(lambda: a.recv(src="B")), Background(lambda: b.recv(src="A"))]
        found = both(a)
        over = {**found["processes"][0], "call": found["processes"][0]["call"] + 1}
        larger = {**found, "processes": [*found["processes"], over]}

        def beside(path: str, step: str, *more: Any) -> bool:
            if step == "commit" and not others:
                others.append(end_calls(a, larger))
            return judge(path, step, *more)

        monkeypatch.setattr(_native, "judge", beside)
        assert end_calls(a, found) == ["A", "B"] and others == [[]]
        for call in calls:
            with pytest.raises(DeadlockDetected):
                call.result()


def test_an_order_that_is_given_up_and_carried_out_later_is_aborted(alone: Endpoint) -> None:
    """The last process that was asked may be prepared, although nobody has heard of it."""
    steps = []

    def remote(step: str, uid: str, _call: int, _judgement: str) -> bool:
        steps.append((step, uid))
        return uid == "B"

    stuck = [{"uid": uid, "name": uid, "verdict": "stuck", "call": 1, "text": ""} for uid in "BCD"]
    diagnosis = {
        "cycle": ["B"],
        "stuck": [*"BCD"],
        "title": "",
        "sentences": [],
        "processes": stuck,
    }
    assert end_calls(alone, diagnosis, remote=remote) == []
    assert steps == [("prepare", "B"), ("prepare", "C"), ("abort", "B"), ("abort", "C")]


# ---- the length of judgements ----


def test_a_segment_has_room_for_the_longest_judgement(alone: Endpoint) -> None:
    """The limit is the core's: it would cut a longer text, and the rest would be no JSON."""
    path = str(Path(alone.folder) / f"{alone.uid}.seg")
    for more in (0, 1):
        call, process = blocked(alone, lambda: alone.recv(tag=1))
        judgement = json.dumps({"cycle": ["A"], "why": ""})
        judgement = judgement[:-2] + "x" * (JUDGEMENT_BYTES - len(judgement) + more) + '"}'
        assert _native.judge(path, "prepare", process["call"], judgement)
        assert _native.judge(path, "commit", process["call"])
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
