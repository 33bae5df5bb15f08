"""Silence slows direct connections between sites unless they are kept warm: real TCP, in a lab."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.world import LabWorld
from sfm_kernel.transport.tcp_info import choosable
from tests.sites.conftest import MakeLab
from tests.waiting import wait_until

pytestmark = pytest.mark.zmq

PROGRAM = """
import json, os, sys, time
import sfm_kernel
from sfm_kernel import relay
from sfm_kernel.observe import snapshot
from sfm_kernel.relay.view import RemoteView
sfm = sfm_kernel.join("lab", sys.argv[1])
view = RemoteView.of(sfm)
(far,) = [one for one in sfm._transports if one.kind == "zmq"]

def say(size):
    sfm.send(dest="B", data=bytes(size))
    sfm.recv(src="B")

def line():
    (one,) = far.exchange.connections()
    return one

def links():
    return snapshot(sfm, view.states())["links"]

print(json.dumps("joined"), flush=True)
if sys.argv[1] == "B":  # it is seen at A, too
    key = bytes.fromhex(os.environ["SFM_KEY"])
    relay.start(sfm.world, os.environ["SFM_DIRECTORY"], key, sfm.folder)
    while True:
        sfm.send(dest=sfm.recv().src)
for command in sys.stdin:
    print(json.dumps(eval(command)), flush=True)
"""


class Lines:
    """A process B at site B, and others at site A that obey commands."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self._stack = lab, contextlib.ExitStack()
        self._world = self._stack.enter_context(LabWorld(lab))
        self._started: dict[str, subprocess.Popen[str]] = {}
        self.start("B", "B", "")

    def start(self, name: str, site: str, congestion: str) -> None:
        """A process with this SFM_TCP."""
        environment = self._world._environment(site, 1) | {"SFM_TCP": congestion}
        pipe = subprocess.PIPE
        self._started[name] = self._lab.run(
            site, [sys.executable, "-c", PROGRAM, name], environment, stdin=pipe, stdout=pipe,
            text=True, bufsize=1,
        )  # fmt: skip
        assert self._answer(name) == "joined"

    def ask(self, name: str, command: str) -> Any:
        """The answer of the process to the command."""
        stdin = self._started[name].stdin
        assert stdin is not None
        stdin.write(command + "\n")
        return self._answer(name)

    def _answer(self, name: str) -> Any:
        stdout = self._started[name].stdout
        assert stdout is not None
        return json.loads(stdout.readline())

    def close(self) -> None:
        for process in self._started.values():
            process.kill()
            with process:
                pass
        self._stack.close()


@pytest.fixture
def lines(make_lab: MakeLab) -> Iterator[Lines]:
    made = Lines(make_lab(rtt=0.02, rate=200e6))
    yield made
    made.close()


def test_a_long_line_has_bbr_or_a_heartbeat_unless_it_is_left_alone(lines: Lines) -> None:
    by_default = ("bbr", "bbr") if "bbr" in choosable() else ("heartbeat", "")
    asked = {
        "default": ("", *by_default),
        "beats": ("cubic", "heartbeat", "cubic"),
        "still": ("cubic,still", "", "cubic"),
    }
    for name, (congestion, warm, algorithm) in asked.items():
        lines.start(name, "A", congestion)
        lines.ask(name, "say(1000)")

        def is_so(name: str = name, warm: str = warm, algorithm: str = algorithm) -> bool:
            connection = lines.ask(name, "line()")
            return connection["warm"] == warm and connection["algorithm"].startswith(algorithm)

        wait_until(is_so)

    def sent(name: str) -> int:
        sent: int = lines.ask(name, "line()")["tcp"]["bytes_sent"]
        return sent

    silent = [name for name, (_, warm, _) in asked.items() if warm != "heartbeat"]
    before = {name: sent(name) for name in silent}
    beats: set[int] = set()
    wait_until(lambda: beats.add(sent("beats")) or len(beats) > 5)
    assert {name: sent(name) for name in silent} == before, "nobody has said anything"


def test_an_idle_restart_is_seen_and_explained(lines: Lines) -> None:
    lines.start("A", "A", "cubic,still")

    def is_open() -> bool:
        lines.ask("A", "say(100_000)")
        connection = lines.ask("A", "line()")
        return connection["algorithm"] == "cubic" and connection["tcp"]["snd_cwnd"] >= 40

    said = (
        r"the connection A → B was silent for \d+\.\d s and restarted from (\d+) segments instead "
        r"of (\d+): \+(\d+) ms; a gateway would have kept it warm"
    )

    def restart() -> re.Match[str] | None:
        wait_until(is_open)
        lines.ask("A", "time.sleep(8 * line()['tcp']['rto_s'])")  # with each the window is halved
        lines.ask("A", "say(400_000)")
        links = {(entry["from"], entry["to"]): entry for entry in lines.ask("A", "links()")}
        link = links.get(("A", "B"), {"idle_restarts": 0})
        return re.search(said, link["sentence"]) if link["idle_restarts"] else None

    while (found := restart()) is None:
        pass
    small, large, cost = map(int, found.groups())
    assert small < large >= 40 and cost >= 20  # a round trip or more
