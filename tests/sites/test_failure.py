"""What happens to messages between sites when lines and gateways fail: nothing."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sfm_kernel.bench.sites.lab import Lab
from sfm_kernel.bench.sites.world import LabWorld

pytestmark = [pytest.mark.tcp, pytest.mark.fault]

SECONDS = 6.0
"""How long the two talk; a disturbance begins after the first ``BEFORE``."""
BEFORE = 1.5


class Talk:
    """Two processes in two sites that talk, and the gateways of these sites."""

    def __init__(self, lab: Lab, gateways: int) -> None:
        self._stack = contextlib.ExitStack()
        self._world = self._stack.enter_context(LabWorld(lab))
        self.lab = lab
        self.gateways = {
            site: [self._run(site, 2 + nth, "sfm_kernel.gateway", "--world", "lab", "--site", site)
                   for nth in range(gateways)]
            for site in "AB"
        }  # fmt: skip
        for one in (one for each in self.gateways.values() for one in each):
            assert one.stdout is not None and one.stdout.readline()  # it is listed
        self._both = [
            self._run(site, 1, "tests.sites.chat", name, peer, str(SECONDS))
            for site, name, peer in (("A", "a", "b"), ("B", "b", "a"))
        ]
        self.routes = {self._line(one) for one in self._both}
        time.sleep(BEFORE)

    def _run(self, site: str, host: int, *command: str) -> subprocess.Popen[str]:
        environment = self._world._environment(site, host) | {"SFM_SITE": site}
        one = self.lab.run(
            site, [sys.executable, "-m", *command], environment, host=host,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._stack.callback(_end, one)
        return one

    @staticmethod
    def _line(one: subprocess.Popen[str]) -> str:
        assert one.stdout is not None
        return one.stdout.readline().strip()

    def outcome(self) -> list[dict[str, Any]]:
        """What both have told, when they are through."""
        return [json.loads(self._line(one)) for one in self._both]

    def close(self) -> None:
        self._stack.close()


def _end(one: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        one.send_signal(signal.SIGCONT)
    one.kill()
    with one:
        pass


@pytest.fixture
def talk(make_lab: Callable[..., Lab]) -> Iterator[Callable[[int], Talk]]:
    """``talk(gateways)``: with so many in each site."""
    with contextlib.ExitStack() as stack:

        def begin(gateways: int) -> Talk:
            made = Talk(make_lab({"A": 3, "B": 3}, rtt=0.02, rate=200e6), gateways)
            stack.callback(made.close)
            assert made.routes == {"gateway" if gateways else "tcp"}
            return made

        yield begin


def check(talk: Talk) -> None:
    """Everything has arrived, once and in order."""
    a, b = talk.outcome()
    assert a["failed"] == b["failed"] == []
    assert a["got"] == a["end"] == b["sent"] and b["got"] == b["end"] == a["sent"]


@pytest.mark.parametrize("gateways", [0, 1])
def test_connections_are_reset_again_and_again(
    talk: Callable[[int], Talk], gateways: int, effort: int
) -> None:
    run = talk(gateways)
    for _ in range(3 * effort):
        run.lab.reset_connections()
        time.sleep(0.7)
    check(run)


@pytest.mark.parametrize("gateways", [0, 1])
def test_a_line_that_is_cut(talk: Callable[[int], Talk], gateways: int) -> None:
    run = talk(gateways)
    run.lab.cut(6.0)  # longer than anybody talks: what is sent meanwhile is kept
    check(run)


@pytest.mark.parametrize("site", ["A", "B"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_one_of_two_gateways_dies_or_hangs(
    talk: Callable[[int], Talk], site: str, how: signal.Signals
) -> None:
    run = talk(2)
    for one in run.gateways[site]:  # the one, then the other: one of them is in use
        one.send_signal(how)
        time.sleep(1.0)
        if how == signal.SIGSTOP:
            one.send_signal(signal.SIGCONT)
            time.sleep(1.0)
        else:
            break
    check(run)


def test_without_gateways_messages_go_directly(talk: Callable[[int], Talk]) -> None:
    run = talk(1)
    for each in run.gateways.values():
        each[0].kill()
    check(run)
