"""Messages between sites arrive unharmed when connections and gateways fail."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pytest

from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.world import LabWorld
from tests.sites.conftest import MakeLab, start
from tests.waiting import next_line
from tests.zmq.sockets import place

pytestmark = [pytest.mark.zmq, pytest.mark.fault]

SECONDS = 6.0
"""How long the two talk, as a rule; disturbances begin ``BEFORE`` seconds after the start."""
BEFORE = 1.5


class Talk:
    """Two processes in two sites that talk, and the gateways of these sites."""

    def __init__(self, lab: Lab, gateways: int, seconds: float, quiet: str = "") -> None:
        self._stack = contextlib.ExitStack()
        self._world = self._stack.enter_context(LabWorld(lab))
        self.lab = lab
        self.gateways = {
            site: [self._run(site, 2 + nth, "sfm_kernel.gateway", "--world", "lab", "--site", site)
                   for nth in range(gateways)]
            for site in "AB"
        }  # fmt: skip
        for gateway in chain(*self.gateways.values()):
            assert next_line(gateway)  # it is listed
        self._both = {
            site: self._run(
                site, 1, "tests.sites.chat", name, peer, "0" if site == quiet else str(seconds)
            )
            for site, name, peer in (("A", "a", "b"), ("B", "b", "a"))
        }
        self.routes = {next_line(process) for process in self._both.values()}
        time.sleep(BEFORE)

    def _run(self, site: str, host: int, *command: str) -> subprocess.Popen[str]:
        return start(self._stack, self._world, site, host, *command)

    def takes(self, site: str) -> str:
        """The next route that the process of this site takes."""
        word, _, way = next_line(self._both[site]).partition(" ")
        assert word == "way", f"it takes no other one: {word}{way}"
        return way

    def gateway_at(self, site: str, address: str) -> subprocess.Popen[str]:
        """The gateway of this site that has the address."""
        hosts = [self.lab.address(site, host) for host in range(2, 2 + len(self.gateways[site]))]
        return self.gateways[site][hosts.index(place(address)[0])]

    def outcome(self) -> list[dict[str, Any]]:
        """The reports of both processes, when they have finished, with the number of ``ways``."""
        reports = []
        for process in self._both.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in self._both.values():
            ways = 0
            while (line := next_line(process)).startswith("way"):
                ways += 1
            reports.append(json.loads(line) | {"ways": ways})
        return reports

    def close(self) -> None:
        self._stack.close()


BeginTalk = Callable[..., Talk]


@pytest.fixture
def talk(make_lab: MakeLab) -> Iterator[BeginTalk]:
    """``talk(gateways)``: their number in each site; ``seconds``: inf lasts until ``outcome``."""
    with contextlib.ExitStack() as stack:

        def begin(gateways: int, seconds: float = SECONDS, quiet: str = "") -> Talk:
            lab = make_lab({"A": 3, "B": 3}, rtt=0.02, rate=200e6)
            made = Talk(lab, gateways, seconds, quiet)
            stack.callback(made.close)
            assert made.routes == {"gateway" if gateways else "zmq"}
            return made

        yield begin


def check(talk: Talk) -> list[dict[str, Any]]:
    """Everything has arrived, once and in order; returns the outcome."""
    a, b = talk.outcome()
    assert a["failed"] == b["failed"] == []
    assert a["got"] == a["end"] == b["sent"] and b["got"] == b["end"] == a["sent"]
    return [a, b]


@pytest.mark.parametrize("gateways", [0, 1])
def test_connections_are_reset_again_and_again(talk: BeginTalk, gateways: int, effort: int) -> None:
    run = talk(gateways)
    for _ in range(3 * effort):
        run.lab.reset_connections()
        time.sleep(0.7)
    check(run)


@pytest.mark.parametrize("gateways", [0, 1])
def test_a_line_that_is_cut(talk: BeginTalk, gateways: int) -> None:
    run = talk(gateways)
    run.lab.cut(6.0)  # longer than anybody talks: what is sent meanwhile is kept
    check(run)


@pytest.mark.parametrize("site", ["A", "B"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_of_two_gateways_dies_or_hangs(talk: BeginTalk, site: str, how: signal.Signals) -> None:
    run = talk(2, math.inf)
    first = run.takes(site)
    used = run.gateway_at(site, first)
    used.send_signal(how)
    second = run.takes(site)
    assert second != first
    if how == signal.SIGKILL:
        assert run.gateway_at(site, second) is not used
    else:  # its kernel answers: a process may meanwhile have tried the direct route
        used.send_signal(signal.SIGCONT)
    check(run)


def test_the_only_gateway_hangs(talk: BeginTalk) -> None:
    """Its kernel acknowledges what it does not forward: messages go directly until it goes on."""
    run = talk(1, math.inf)
    first = run.takes("A")
    run.gateway_at("A", first).send_signal(signal.SIGSTOP)
    assert run.takes("A") == "direct"
    run.gateway_at("A", first).send_signal(signal.SIGCONT)
    assert run.takes("A") == first
    check(run)


def test_who_sends_nothing_does_not_lead_back_to_a_gateway_that_hangs(talk: BeginTalk) -> None:
    """Its side of the path is well: what it receives shows that the other side's is not."""
    run = talk(1, math.inf, quiet="A")
    first = run.takes("B")
    stopped = time.monotonic()
    run.gateway_at("B", first).send_signal(signal.SIGSTOP)
    assert run.takes("B") == "direct"
    time.sleep(5.0)
    run.gateway_at("B", first).send_signal(signal.SIGCONT)
    seconds = time.monotonic() - stopped
    assert check(run)[1]["ways"] < 3 + seconds / 2, "it is tried again every five seconds or so"


def test_without_gateways_messages_go_directly(talk: BeginTalk) -> None:
    run = talk(1)
    for each in run.gateways.values():
        each[0].kill()
    check(run)
