"""What observers are told of real worlds is valid by the schema, whatever is in them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from sfm_kernel.observe import explain, snapshot
from sfm_kernel.observe.timeline import Recorder
from tests.observe.harness import Run, running
from tests.observe.pictures import Dict, check
from tests.observe.states import HTML, STATES, nasty, occupied
from tests.waiting import wait_until


def told(run: Run) -> tuple[Dict, Dict, Dict]:
    """Snapshot, diagnosis and timeline: valid, and JSON as it is."""
    picture, diagnosis = snapshot(run.folder), explain(run.folder)
    timeline = Recorder(run.folder).update()
    for what, one in (("snapshot", picture), ("diagnosis", diagnosis), ("timeline", timeline)):
        check(what, one)
        assert json.loads(json.dumps(one, allow_nan=False)) == one
        json.dumps(one, ensure_ascii=False).encode()  # no halves of characters
    return picture, diagnosis, timeline


def see(run: Run, states: dict[Any, str]) -> None:
    """Wait until the processes are in these states; what is told is valid all the time."""
    wait_until(lambda: {one["name"]: one["state"] for one in told(run)[0]["processes"]} == states)


def test_hostile_messages_and_templates() -> None:
    name = f"{HTML}ß" + "→" * 30
    with running(nasty, 2, names=["A", name]) as run:
        see(run, {"A": "blocked in recv", name: "blocked in recv"})
        wait_until(lambda: explain(run.folder)["verdict"] == "deadlock")
        picture, diagnosis, timeline = told(run)
        assert diagnosis["stuck"] == ["A", name]
        receiver = next(one for one in picture["processes"] if one["name"] == name)
        assert receiver["depth"] == 60 and len(receiver["messages"]) == 50
        shown = dict(receiver["messages"][0]["attributes"])
        assert shown["html"] == f"'{HTML}'" and shown["control"] == "'a b c [31m  '"
        assert shown["array"] == "<array: 30x40 of f8>"
        assert max(len(text) for pair in shown.items() for text in pair) < 60
        assert len(timeline["flights"]) == 60


GUEST = """
import sys, sfm_kernel
with sfm_kernel.join(sys.argv[1], "guest", guest=True) as sfm: sfm.recv(src="receives")
"""


def test_all_processes_are_in_the_picture_whatever_they_do() -> None:
    """Also while they hold their GIL, when they are stopped, and when they are dead."""
    with running(occupied, 5, names=list(STATES)) as run:
        command = [sys.executable, "-c", GUEST, Path(run.folder).name]
        with subprocess.Popen(command) as guest:
            see(run, STATES | {"guest": "blocked in recv"})
            for name in STATES:
                run.signal(name, signal.SIGSTOP)
            see(run, STATES | {"guest": "blocked in recv"})
            receives = run.process("receives")
            assert receives["messages"][0]["src"] == "sends"
            *shown, rest = receives["others"]
            assert shown[0]["name"].startswith("0 <img") and shown[0]["kind"] == "thread"
            assert rest["kind"] == "more" and len(shown) + int(rest["name"]) == 21
            guest.kill()
        see(run, STATES | {"guest": "dead"})
        assert "guest has died." in explain(run.folder)["sentences"]
