"""What is seen of the connections between sites: each machine is a folder, and a site."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfm_kernel
from tests.tcp.machines import Machines, two_machines, wait_until

pytestmark = pytest.mark.tcp

ANSWER = """
while True:
    sfm.send(dest=sfm.recv(tag="hello").src, tag="answer")
"""


@pytest.fixture
def machines(world: str, sfm_dir: Path) -> Iterator[Machines]:
    before = dict(os.environ)
    try:
        with two_machines(world, sfm_dir) as made:
            os.environ.update(made.environment("here"))
            yield made
    finally:
        os.environ.clear()
        os.environ.update(before)


def test_a_direct_line_is_told_of(machines: Machines) -> None:
    machines.process("B", "there", ANSWER)
    with sfm_kernel.join(machines.world, "A") as sfm:
        sfm.send(dest="B", tag="hello")
        sfm.recv(tag="answer")
        (tcp,) = [one for one in sfm._transports if one.kind == "tcp"]
        (told,) = tcp.exchange.connections()
        uids = {one.name: one.uid for one in sfm.members()}
        assert (told["gateway"], told["peers"], told["count"]) == (None, [uids["B"]], 1)
        assert told["tcp"]["bytes_sent"] > 0 and told["tcp"]["snd_cwnd"] >= 1
        assert (told["silent_s"], told["warm"]) == (None, "")
        assert told["idle_restarts"] >= 0 and told["unsent_s"] >= 0

        wait_until(lambda: len(machines.picture()["links"]) == 2)  # B's picture comes by its relay
        seen = machines.picture()
        here, there = "site-of-here", "site-of-there"
        ways = [(one["from"], one["to"], one["via"]) for one in seen["links"]]
        assert ways == [(here, there, "direct"), (there, here, "direct")]
        assert all(one["count"] == 1 and one["rtt_s"] >= 0 for one in seen["links"])
        assert [one["name"] for one in seen["sites"]] == [here, there]
        assert [one["processes"] for one in seen["sites"]] == [["A"], ["B"]]


def test_a_line_between_gateways_is_told_of(machines: Machines) -> None:
    gateways = []
    for site in ("here", "there"):
        command = [sys.executable, "-m", "sfm_kernel.gateway", "--bind", "127.0.0.1"]
        command += ["--site", f"site-of-{site}", "--delay", "5ms"]
        environment = machines.environment(site)
        one = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        gateways.append(one)
        assert one.stdout and "of site" in one.stdout.readline()
    try:
        machines.process("B", "there", ANSWER)
        with sfm_kernel.join(machines.world, "A") as sfm:
            wait_until(lambda: sfm.route_kind("B") == "gateway")
            sfm.send(dest="B", tag="hello")
            sfm.recv(tag="answer")
            (tcp,) = [one for one in sfm._transports if one.kind == "tcp"]
            told = [one for one in tcp.exchange.connections() if one["gateway"]]
            uids = {one.name: one.uid for one in sfm.members()}
            assert [one["peers"] for one in told] == [[uids["B"]]]
            wait_until(lambda: len(machines.picture()["links"]) == 2)
            seen = machines.picture()
            assert all(one["via"] == "gateway" and one["emulated"] for one in seen["links"])
            assert all("emulated" in one["sentence"] for one in seen["links"])
            assert [len(one["gateways"]) for one in seen["sites"]] == [1, 1]
    finally:
        for one in gateways:
            one.terminate()
            one.communicate()
