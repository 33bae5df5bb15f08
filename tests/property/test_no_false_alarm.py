"""Nobody is told of a deadlock where there is none: correct programs, looked at all the time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, Group, directory
from sfm_kernel.observe import explain, snapshot
from sfm_kernel.observe.explain.graph import YOUNG
from tests.observe import slow
from tests.observe.harness import Run, running
from tests.observe.programs import Script, play
from tests.waiting import wait_until

pytestmark = pytest.mark.usefixtures("forked")


def watch(run: Run, until_alarm: bool = False) -> tuple[Counter[str], dict[str, Any] | None]:
    """Ask until the program has ended: how often each verdict came, and the first alarm."""
    verdicts: Counter[str] = Counter()
    alarm = None
    while run.running:
        try:
            found = explain(run.folder)
        except FileNotFoundError:  # it has just ended
            continue
        verdicts[found["verdict"]] += 1
        if found["verdict"] == "deadlock":
            alarm = alarm or found
            if until_alarm:
                break
        time.sleep(0.002)  # two cores are all that there is
    return verdicts, alarm


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("size", "asks"), [(2, True), (3, False), (4, True), (5, False)])
def test_correct_programs(size: int, asks: bool, effort: int) -> None:
    for _ in range(effort):
        seed = random.randrange(1 << 32)
        steps = Script(seed, size, asks).write(50).steps
        with running(play, size, steps) as run:
            verdicts, alarm = watch(run)
            assert alarm is None, f"Script({seed}, {size}, {asks}): {json.dumps(alarm, indent=1)}"
            done = Counter(step[0] for step in steps)
            assert run.results() == [done[rank] for rank in range(size)]
        assert verdicts["waiting"] > 0, "never was anybody blocked"


@pytest.mark.timeout(900)
@pytest.mark.parametrize("asks", [False, True])
def test_processes_that_are_stopped_for_a_while(asks: bool, effort: int) -> None:
    for _ in range(effort):
        seed = random.randrange(1 << 32)
        with running(play, 3, Script(seed, 3, asks).write(40).steps) as run:
            stopper = threading.Thread(target=stop_now_and_then, args=(run, seed))
            stopper.start()
            _, alarm = watch(run)
            stopper.join()
            assert alarm is None, f"Script({seed}, 3, {asks}): {json.dumps(alarm, indent=1)}"
            run.results()


def stop_now_and_then(run: Run, seed: int) -> None:
    """Stop one of its processes for up to 0.8 s, again and again."""
    chance = random.Random(seed)
    try:
        pids = [process["pid"] for process in snapshot(run.folder)["processes"]]
    except FileNotFoundError:
        return  # it has ended already
    while run.running:
        pid = chance.choice(pids)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.8))
            os.kill(pid, signal.SIGCONT)
        time.sleep(chance.uniform(0, 0.2))


@pytest.mark.parametrize("program", slow.ALL, ids=lambda program: program.__name__)
def test_programs_that_look_stuck(program: Callable[[Endpoint], None]) -> None:
    with running(program, 2, names=["A", "B"]) as run:
        verdicts, alarm = watch(run)
        run.results()
    assert alarm is None, alarm["sentences"]
    assert verdicts["waiting"] > 0


@pytest.mark.parametrize(
    ("program", "names", "stopped"),
    [
        (slow.meet_and_go_on, "AB", "A"),
        (slow.meet_at_a_tree_and_go_on, "AB", "A"),
        (slow.post_and_go_on, "AB", "A"),
        (slow.ask_around, "ABC", "B"),
    ],
    ids=["in a barrier", "in a barrier of MPI", "before a post", "before its callback"],
)
def test_one_is_stopped_that_would_find_what_it_waits_for(
    program: Callable[[Endpoint], None], names: str, stopped: str
) -> None:
    with running(program, len(names), names=list(names)) as run:
        sleeper = names[-1]
        wait_until(lambda: (run.process(sleeper)["now"] or {}).get("does") == "sleep")
        wait_until(lambda: run.process(stopped)["state"].startswith("blocked"))
        wait_until(lambda: time.time() - run.process(stopped)["since"] > YOUNG)
        run.signal(stopped, signal.SIGSTOP)
        end = time.monotonic() + 3 * slow.LONG
        while time.monotonic() < end:
            found = explain(run.folder)
            assert found["verdict"] != "deadlock", found["sentences"]
            time.sleep(0.01)
        assert run.process(sleeper)["state"] == "blocked in recv", "it waits for the stopped one"
        run.signal(stopped, signal.SIGCONT)
        assert watch(run)[1] is None
        run.results()


def test_members_missing_at_a_tree_are_compared_from_the_first_tick_on(world: str) -> None:
    """Else a process stopped then is called stuck, though the others have since come and ended."""
    with sfm_kernel.join(world, "A") as sfm:
        group = Group(sfm, ["A"])
        group.barrier()
        facts = json.loads(group._team.tick_at_tree([0]))
    assert 0 < facts["known"] <= time.time(), "0 says that there is nothing to compare"


def states(folder: str) -> list[str]:
    """The states of a world's processes; none while it has no folder."""
    try:
        return [process["state"] for process in snapshot(folder)["processes"]]
    except FileNotFoundError:  # who joins removes a world in which nobody is
        return []


def test_somebody_may_still_join(world: str) -> None:
    """In a world without a size, whoever waits for somebody new, or for anybody."""
    command = [sys.executable, "-c", "import sys, sfm_kernel\n" + LATE, world]
    with subprocess.Popen(command) as late:
        try:
            with directory.LocalDirectory(world) as found:
                folder = found.folder
            wait_until(lambda: states(folder) == [RECV])
            end = time.monotonic() + slow.LONG
            while time.monotonic() < end:
                assert explain(folder)["verdict"] == "waiting"
            with sfm_kernel.join(world, "B") as sfm:
                sfm.send(dest="A")
                assert late.wait(20) == 0
        finally:
            late.kill()


def test_waiting_for_a_rank_that_has_not_joined_is_no_deadlock(world: str) -> None:
    command = [sys.executable, "-c", "import sys, sfm_kernel\n" + EARLY, world]
    with subprocess.Popen(command) as early:
        try:
            with directory.LocalDirectory(world) as found:
                folder = found.folder
            wait_until(lambda: states(folder) == [RECV])
            wait_until(lambda: time.time() - snapshot(folder)["processes"][0]["since"] > YOUNG)
            with sfm_kernel.join(world, "B", rank=1, size=2) as sfm:
                end = time.monotonic() + slow.LONG
                while time.monotonic() < end:
                    found_now = explain(folder)
                    assert found_now["verdict"] == "waiting", found_now["sentences"]
                sfm.send(dest="A")
                assert early.wait(20) == 0
        finally:
            early.kill()


EARLY = "with sfm_kernel.join(sys.argv[1], 'A', rank=0, size=2) as sfm: sfm.recv(src=1)"
LATE = "with sfm_kernel.join(sys.argv[1], 'A') as sfm: sfm.recv()"
RECV = "blocked in recv"


def test_a_planted_deadlock_is_seen() -> None:
    """The tests above would notice a deadlock."""
    steps = Script(1, 3, asks=False).write(20).steps
    steps.append((2, "receive", ("exactly", 1, 2, 1_000_000)))
    with running(play, 3, steps) as run:
        _, alarm = watch(run, until_alarm=True)
    assert alarm is not None and alarm["cycle"] == [1, 2]
    assert {1, 2} <= set(alarm["stuck"]) <= {0, 1, 2}, "0 may have come last"
    assert re.match(r"(0 and 1 are|1 is) in barrier\(\) and ", alarm["sentences"][0])
