"""Observers see the state of a process: busy, holding its GIL, stopped, blocked, or dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Endpoint
from sfm_kernel.observe import Observer
from sfm_kernel.observe.events import events
from sfm_kernel.observe.snapshot import message_text, pulse, segments, snapshot
from tests.conftest import Spawn
from tests.waiting import wait_until

CHILD = """
import ctypes, sys, time
import sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "V")
sfm.wait_for("home")
sfm.send(dest="home", ready=True)
{body}
"""


Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def start(home: Endpoint, spawn: Spawn) -> Start:
    """``start(body)``: a process "V" that has joined and then runs ``body``."""

    def start(body: str) -> subprocess.Popen[bytes]:
        process = spawn(CHILD.format(body=body), home.world)
        assert home.recv(20).ready
        return process

    return start


def look(home: Endpoint, observer: Observer | None = None) -> dict[str, Any]:
    picture = snapshot(home.folder, observer=observer)
    assert picture["world"] == home.world
    return next(process for process in picture["processes"] if process["name"] == "V")


def test_a_blocked_receive_says_for_what(home: Endpoint, start: Start) -> None:
    process = start("sfm.recv(src='home', tag=2)")
    wait_until(lambda: look(home)["state"] == "blocked in recv")
    assert look(home)["waits"] == "recv(src='home', tag=2)"
    home.send(dest="V", tag=3)
    wait_until(lambda: look(home)["depth"] == 1)
    home.send(dest="V", tag=2)
    process.wait()


def test_messages_are_described(home: Endpoint, start: Start) -> None:
    start("time.sleep(60)")
    home.send(dest="V", n=1, x=0.5, t="a\tb\n<b>", raw=b"1" * 5000, data=np.zeros(1000), none=None)
    wait_until(lambda: look(home)["depth"] == 1)
    (message,) = look(home)["messages"]
    assert (message["src"], message["context_id"]) == ("home", "")
    assert message["bytes"] > 13_000
    assert message_text(message) == (
        "dest='V', src='home', n=1, x=0.5, t='a b <b>', raw=<bytes: 5000>, "
        "data=<array: 1000 of f8>, none=None"
    )


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "ctypes.PyDLL(None).sleep(60)",  # a C function that keeps the GIL
    ],
    ids=["busy", "holding-the-gil"],
)
def test_a_process_that_does_not_listen(home: Endpoint, start: Start, body: str) -> None:
    start(body)
    for n in range(3):
        home.send(dest="V", n=n)
    wait_until(lambda: len(look(home)["messages"]) == 3)
    assert (look(home)["state"], look(home)["depth"]) == ("running", 3)


@pytest.mark.parametrize("observer", [None, Observer()], ids=["once", "again and again"])
def test_stopped_and_dead(home: Endpoint, start: Start, observer: Observer | None) -> None:
    process = start("sfm.recv(tag='never')")
    wait_until(lambda: look(home, observer)["state"] == "blocked in recv")
    os.kill(process.pid, signal.SIGSTOP)
    stopped = look(home, observer)
    assert stopped["alive"] and stopped["waits"] == "recv(tag='never')"
    before = pulse(home.folder, observer)
    process.kill()
    process.wait()
    assert pulse(home.folder, observer) != before
    dead = look(home, observer)
    assert not dead["alive"]
    assert dead["waits"] == "recv(tag='never')", "how it ended is still to be seen"


def test_an_observer_keeps_nothing_that_is_gone(home: Endpoint, start: Start) -> None:
    """Otherwise its memory would stay in use as long as the observer lives."""

    def mapped() -> int:
        with open("/proc/self/maps") as lines:
            return sum(uid in line for line in lines)

    process = start("time.sleep(60)")
    uid = look(home)["uid"]
    others = mapped()
    observer = Observer()
    for _ in range(3):
        assert look(home, observer)["alive"]
        assert mapped() == others + 1
    process.kill()
    process.wait()
    os.unlink(segments(home.folder)[uid])
    pulse(home.folder, observer)
    assert mapped() == others


def test_counters(home: Endpoint, start: Start) -> None:
    start("for _ in range(5): sfm.send(dest='home', n=sfm.recv().n)\ntime.sleep(60)")
    for n in range(5):
        home.send(dest="V", n=n)
        assert home.recv(20).n == n
    state = look(home)
    assert (state["sent"], state["received"], state["depth"]) == (6, 5, 0)


def test_the_shell_command_shows_it(home: Endpoint, start: Start) -> None:
    start("sfm.recv(tag=1)")
    wait_until(lambda: look(home)["state"] == "blocked in recv")
    home.send(dest="V", tag=2)
    wait_until(lambda: look(home)["depth"] == 1)
    command = [sys.executable, "-m", "sfm_kernel"]
    shown = subprocess.run([*command, "queues", home.world], capture_output=True, text=True)
    assert "blocked in recv" in shown.stdout and "recv(tag=1)" in shown.stdout
    assert "tag=2" in shown.stdout
    worlds = subprocess.run([*command, "worlds"], capture_output=True, text=True)
    assert home.world in worlds.stdout.split()
    wrong = subprocess.run([*command, "queues", "nowhere"], capture_output=True, text=True)
    assert wrong.returncode == 1 and "nowhere" in wrong.stderr


def test_both_ends_of_a_message_are_in_the_trace(home: Endpoint, start: Start) -> None:
    """Both ends give it the same number. The trace has states, too, and outlives its process."""
    victim = start(
        "[sfm.recv(n=n) for n in (2, 1)]; sfm.send(dest='home', n=3, data=bytes(5000))\n"
        "sfm.show_running(False); time.sleep(60)"
    )
    for n in (1, 2):
        home.send(dest="V", n=n)
    home.recv(20, n=3)
    wait_until(lambda: look(home)["state"] == "idle")  # the send has returned
    victim.kill()
    victim.wait()
    found = events(home.folder)
    uids = {process["name"]: process["uid"] for process in snapshot(home.folder)["processes"]}
    home_uid, v_uid = uids["home"], uids["V"]

    def seen_by(uid: str) -> list[tuple[str, int]]:
        exchanged = [event for event in found if event["uid"] == uid and event["peer"]]
        return [(event["what"], event["number"]) for event in exchanged]

    # The first that V sent, and home received, says that it is ready.
    assert seen_by(home_uid) == [("received", 1), ("sent", 1), ("sent", 2), ("received", 2)]
    assert seen_by(v_uid) == [("sent", 1), ("received", 2), ("received", 1), ("sent", 2)]
    assert next(event for event in reversed(found) if event["what"] == "received")["nbytes"] > 5000
    assert {event["peer"] for event in found} == {home_uid, v_uid, ""}
    assert "running" in {event["what"] for event in found}
    last: dict[str, int] = {}
    for event in found:
        last[event["uid"]] = max(event["nth"], last.get(event["uid"], 0))
    assert events(home.folder, since=last) == []
