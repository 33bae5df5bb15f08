"""Deadlocks that only something could resolve that nobody can judge."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import sfm_kernel
from sfm_kernel import Endpoint, RecvTimeout, WouldBlock
from sfm_kernel.observe import DeadlockMonitor
from tests.observe.harness import running

NAMES = ["asks", "helps", "locked", "answers", "waits", "polls", "retries"]


def seven_ways(sfm: Endpoint) -> None:
    """Nobody goes on, and no observer can prove that."""
    peer: Any = dict(zip(NAMES, NAMES[1:] + NAMES[:1], strict=True))[str(sfm.name)]
    if sfm.name in ("asks", "helps"):  # their network threads wait for each other
        sfm.buffering = 0
        peer = "helps" if sfm.name == "asks" else "asks"
        sfm.regcb(lambda m: sfm.send(dest=peer, hop=m.hop + 1), hop=lambda hop: hop >= 0)
        sfm.with_buffering(1000).send(dest=peer, hop=0)
        sfm.recv(src=peer, tag="end")
    elif sfm.name == "locked":
        result = threading.Event()
        sfm.regcb(lambda _: result.set(), tag="result")
        sfm.recv(tag="results", src="answers", n=0)
        result.wait()  # lock
    elif sfm.name == "answers":
        for n in range(2):
            sfm.send(dest="locked", tag="results", n=n)
        sfm.recv(src="locked")
    elif sfm.name == "waits":
        sfm.wait_for("master")
    while sfm.name == "polls":
        with contextlib.suppress(WouldBlock):
            sfm.recv_nb(src="waits")
    while sfm.name == "retries":
        with contextlib.suppress(RecvTimeout):
            sfm.recv(0.2, src="polls")


def test_doubts_are_said_as_doubts() -> None:
    with running(seven_ways, len(NAMES), names=NAMES) as run:
        monitor, found = DeadlockMonitor(run.folder), None
        while found is None:
            found = monitor.check()
            time.sleep(0.1)
    assert (found["verdict"], found["stuck"]) == ("waiting", [])
    assert found["title"].startswith("It would be a deadlock but for ")
    assert set(found["but_for"]["stuck"]) == set(NAMES)
    said = {judged["name"]: judged["text"] for judged in found["processes"]}
    for name in ("asks", "helps"):
        # By the moment of the look, its callback still runs, or could run again.
        assert "since a callback runs." in said[name] or "callback regcb(hop=" in said[name]
    assert said["locked"].startswith("locked waits for a lock in test_doubts.py, line ")
    assert said["locked"].endswith(
        "locked's inbox holds 1 message that nearly fits callback regcb(tag='result'): "
        "tag is 'results', not 'result'."
    )
    assert "Nobody is named 'master'; there are asks, helps, locked, " in said["waits"]
    assert said["waits"].endswith("That may end: a newcomer named 'master' may still join.")
    assert said["polls"].startswith("polls polls recv_nb(src='waits') in ")
    last = found["sentences"][-1]
    for text in (
        "polls and retries do nothing but poll",
        "nobody releases the lock that locked waits for",
        "a newcomer named 'master' never joins",
    ):
        assert text in last


def tells(sfm: Endpoint) -> None:
    """A guest, which has learnt the world's name, has sent and left: another one may come."""
    if sfm.name == "A":
        sfm.recv(tag="result")
        sfm.recv(tag="result")
    else:
        with sfm_kernel.join(sfm.world, "worker", guest=True) as worker:
            worker.send(dest="A", tag="result")


def test_a_guest_may_join_a_world_whose_name_is_known() -> None:
    with running(tells, 2, names=["A", "B"]) as run:
        monitor, found = DeadlockMonitor(run.folder), None
        while found is None:
            found = monitor.check()
            time.sleep(0.1)
    assert (found["verdict"], found["stuck"]) == ("waiting", [])
    assert found["title"] == (
        "It would be a deadlock but for a newcomer: A waits for a message that nobody will send"
    )
    assert "That may end: a newcomer may still join." in found["sentences"][0]
    assert found["sentences"][-1] == "If a newcomer never joins, A never goes on."
