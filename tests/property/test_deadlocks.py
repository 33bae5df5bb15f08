"""Generated deadlocks: the cycle and the processes that it blocks are reported exactly."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from sfm_kernel.observe import snapshot
from sfm_kernel.observe.deadlocks import end_calls
from sfm_kernel.observe.explain.graph import YOUNG
from tests.observe.harness import Run, running
from tests.observe.rounds import Round, make, play
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("forked")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("size", [2, 4, 6])
def test_generated_deadlocks(size: int, effort: int, tmp_path: Path) -> None:
    for nth in range(effort):
        folder = tmp_path / str(nth)
        folder.mkdir()
        go_through(size, random.randrange(1 << 32), folder)


def go_through(size: int, seed: int, folder: Path) -> None:
    rounds = [make(f"{seed} {nth}", size) for nth in range(6)]
    with running(play, size, rounds, str(folder)) as run:
        for nth, round_ in enumerate(rounds):
            print(f"make('{seed} {nth}', {size}) == {round_}")  # shown where the test fails
            (folder / f"{nth} begins").touch()
            check(run, round_)
            (folder / f"{nth} ends").touch()
            wait_for(folder, "* done by *", (nth + 1) * size)
        deadlocks = [sum(rank in round_.stuck for round_ in rounds) for rank in range(size)]
        assert run.results() == deadlocks


def wait_for(folder: Path, pattern: str, count: int) -> None:
    wait_until(lambda: len(list(folder.glob(pattern))) == count)


def check(run: Run, round_: Round) -> None:
    """All that is told is true, at all times; in the end all is told. Ends the deadlock."""
    limit = time.monotonic() + 15
    last = False
    while True:
        assert time.monotonic() < limit
        known = last
        last = is_old(run, round_)
        found = run.explain()
        assert set(found["stuck"]) <= round_.stuck, found["sentences"]
        if known and set(found["stuck"]) == round_.stuck:
            break
        time.sleep(0.02)
    assert found["verdict"] == expected_verdict(run, round_)
    begin = found["cycle"].index(round_.cycle[0]) if round_.cycle else 0
    assert found["cycle"][begin:] + found["cycle"][:begin] == round_.cycle
    ring = {(edge["from"], edge["to"]) for edge in found["edges"] if edge["cycle"]}
    assert ring == {(rank, round_.waits[rank]) for rank in round_.cycle}
    verdicts = {judged["name"]: judged["verdict"] for judged in found["processes"]}
    assert {rank for rank, verdict in verdicts.items() if verdict == "stuck"} == round_.stuck
    assert {rank for rank, verdict in verdicts.items() if verdict == "idle"} == round_.ended
    waiting = {rank for rank, verdict in verdicts.items() if verdict == "waits"}
    assert waiting == round_.waits.keys() - round_.stuck
    assert set(end_calls(run.folder, found)) == round_.stuck


def is_old(run: Run, round_: Round) -> bool:
    """Whether all are where they will be, for so long that all can be judged."""
    now = snapshot(run.folder)
    for process in now["processes"]:
        if process["rank"] in round_.waits:
            blocked = process["state"].startswith("blocked") and process["settled"]
            if not blocked or now["time"] - process["since"] < 2 * YOUNG:
                return False
        elif process["state"] != ("idle" if process["rank"] in round_.ended else "running"):
            return False
    return True


def expected_verdict(run: Run, round_: Round) -> str:
    if round_.stuck:
        return "deadlock"
    if round_.waits:
        return "waiting"
    return "idle" if len(round_.ended) == len(snapshot(run.folder)["processes"]) else "running"


def test_rounds_are_of_many_kinds() -> None:
    """The generated rounds contain everything that the tests look for."""
    rounds = [make(str(seed), 2 + seed % 5) for seed in range(300)]
    assert {len(round_.cycle) for round_ in rounds} == {0, 1, 2, 3, 4, 5}
    assert any(
        round_.cycle and round_.sends & set(round_.cycle) < set(round_.cycle) for round_ in rounds
    )
    assert any(None in round_.waits.values() for round_ in rounds)
    assert any(round_.stuck and not round_.cycle for round_ in rounds)
    assert any(round_.waits.keys() - round_.stuck and round_.stuck for round_ in rounds)
    # Some wait for those who wait for the cycle.
    assert any(
        round_.waits[rank] in round_.stuck - set(round_.cycle)
        for round_ in rounds
        for rank in round_.stuck - set(round_.cycle)
    )
