"""Interrupting from the panel: only the chosen processes get the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sfm_kernel import directory
from sfm_kernel.directory import signals
from sfm_kernel.jupyter.cluster import end_engines
from sfm_kernel.jupyter.server.clusters import NotInterrupted, interrupt
from sfm_kernel.observe import snapshot
from tests.jupyter.notebook import PATIENCE, wait_for
from tests.jupyter.server import Server, processes, programs

pytestmark = [pytest.mark.keeps("one server for the whole module"), pytest.mark.fault]

WAITS = """
while True:
    try:
        say('waits')
        sfm.recv(never=1)
    except KeyboardInterrupt:
        say('interrupted')
"""


def seen(world: str) -> dict[str, dict[str, Any]]:
    """The processes of a world as a snapshot shows them now, by name."""
    return processes(snapshot(os.path.join(directory.root(), world)))


def wait_until_blocked(world: str, count: int) -> None:
    """Wait until this number of its processes is blocked in recv."""
    wait_for(
        lambda: [p["state"] for p in seen(world).values()].count("blocked in recv") == count,
        f"{count} blocked processes",
    )


def test_one_then_all(shared: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS) as running:
        wait_until_blocked(world, 2)
        uids = {name: process["uid"] for name, process in seen(world).items()}
        answer = shared.done(f"sfm/worlds/{world}/interrupt", {"uids": [uids["A"]]})
        assert answer == {"interrupted": [uids["A"]]}
        assert [running["A"].line() for _ in range(3)] == ["waits", "interrupted", "waits"]
        wait_until_blocked(world, 2)
        answer = shared.done(f"sfm/worlds/{world}/interrupt", {"uids": None})
        assert sorted(answer["interrupted"]) == sorted(uids.values())
        assert [running["A"].line() for _ in range(2)] == ["interrupted", "waits"]
        # Only once: what was sent to A alone did not reach it.
        assert [running["B"].line() for _ in range(3)] == ["waits", "interrupted", "waits"]


def test_the_others_are_interrupted_although_one_cannot_be(shared: Server, world: str) -> None:
    with programs(world, A=WAITS, B=WAITS) as running:
        wait_until_blocked(world, 2)
        uids = {name: process["uid"] for name, process in seen(world).items()}
        running["A"].close()
        body = {"uids": [*uids.values(), "f" * 32]}
        status, answer = shared.post(f"sfm/worlds/{world}/interrupt", body)
        assert status == 409
        assert "A has ended" in answer["message"] and "Interrupted: B" in answer["message"]
        assert f"{'f' * 32} is no process" in answer["message"]
        assert [running["B"].line() for _ in range(2)] == ["waits", "interrupted"]


@pytest.mark.parametrize("body", [[], {"uids": "all"}, {"uids": [1]}])
def test_a_body_that_says_nothing(shared: Server, world: str, body: object) -> None:
    with programs(world, A=WAITS):
        status, answer = shared.post(f"sfm/worlds/{world}/interrupt", body)
        # An empty list of an older client would interrupt all: only null does.
        assert status == 400 and "send" in answer["message"]


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        assert process.poll() is None, "it got a signal"
        process.kill()


def test_a_number_that_a_stranger_has_now(
    world: str, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *args: sent.append(args))
    with programs(world, A=WAITS) as running:
        wait_until_blocked(world, 1)
        folder = os.path.join(directory.root(), world)
        process = seen(world)["A"]
        wrong = {**process, "pid": stranger.pid}
        with pytest.raises(NotInterrupted, match=f"A is not process {stranger.pid}"):
            interrupt(folder, [wrong], None)
        running["A"].close()
        # It died, and its number went to somebody else; an old snapshot still says that it lives.
        with pytest.raises(NotInterrupted, match="A has ended"):
            interrupt(folder, [wrong], None)
        assert not sent


def test_engines_are_ended_and_nobody_who_has_their_number(
    world: str, stranger: subprocess.Popen[bytes]
) -> None:
    cluster, client = SimpleNamespace(engines={}), SimpleNamespace(ids=[])
    with programs(world, A=WAITS, B=WAITS) as running:
        segments = {name: seen(world)[name]["uid"] for name in running}
        engines = {
            name: SimpleNamespace(
                segment=os.path.join(directory.root(), world, f"{uid}.seg"),
                pid=running[name].process.pid,
            )
            for name, uid in segments.items()
        }
        number_of_a = SimpleNamespace(segment=engines["A"].segment, pid=stranger.pid)
        end_engines(cluster, client, [0, 1], [number_of_a, engines["B"]])
        assert running["B"].process.wait(PATIENCE) == -signal.SIGTERM
        with signals.held([(engines["A"].segment, engines["A"].pid)]) as held:
            running["A"].close()
            signals.send(held, signal.SIGKILL)  # its number may be anybody's
    assert stranger.poll() is None


def test_another_machine_cannot_be_reached(world: str) -> None:
    with programs(world, A=WAITS):
        wait_until_blocked(world, 1)
        there = {**seen(world)["A"], "here": False, "host": "far"}
        with pytest.raises(NotInterrupted, match="A runs on far, which this server cannot reach"):
            interrupt(os.path.join(directory.root(), world), [there], [there["uid"]])


def test_all_leaves_the_idle_and_the_notebooks_that_wait_for_cells(world: str) -> None:
    with programs(world, A=WAITS) as running:
        wait_until_blocked(world, 1)
        folder, process = os.path.join(directory.root(), world), seen(world)["A"]
        idle = {**process, "state": "idle"}
        notebook = {**process, "kind": "notebook", "state": "blocked in cell"}
        assert interrupt(folder, [idle, notebook], None) == []
        assert interrupt(folder, [{**notebook, "state": "blocked in recv"}], None)
        assert [running["A"].line() for _ in range(2)] == ["waits", "interrupted"]
