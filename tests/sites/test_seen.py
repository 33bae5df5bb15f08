"""Observers see the connections between sites. Each machine is a folder, and a site."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, EndpointClosed, PeerLost
from tests.waiting import wait_until
from tests.zmq.conftest import transport
from tests.zmq.machines import Machines, two_machines

pytestmark = pytest.mark.zmq

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


@contextlib.contextmanager
def gateway(machines: Machines, machine: str) -> Iterator[subprocess.Popen[str]]:
    """A gateway of this machine's site, which listens."""
    command = [sys.executable, "-m", "sfm_kernel.gateway", "--bind", "127.0.0.1"]
    command += ["--site", f"site-of-{machine}", "--delay", "5ms"]
    environment = machines.environment(machine)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and "of site" in process.stdout.readline()
            yield process
        finally:
            process.terminate()


def test_a_direct_connection_is_shown(machines: Machines) -> None:
    machines.process("B", "there", ANSWER)
    with sfm_kernel.join(machines.world, "A") as sfm:
        sfm.send(dest="B", tag="hello")
        sfm.recv(tag="answer")
        exchange = transport(sfm).exchange
        (row,) = exchange.connections()
        uids = {member.name: member.uid for member in sfm.members()}
        assert (row["gateway"], row["peers"], row["count"]) == (None, [uids["B"]], 1)
        assert row["tcp"]["bytes_sent"] > 0 and row["tcp"]["snd_cwnd"] >= 1
        assert (row["silent_s"], row["warm"]) == (None, "")
        assert row["idle_restarts"] == 0, "the window was never larger than at first"
        wait_until(lambda: exchange.connections()[0]["unsent_s"] > row["unsent_s"] + 0.1)

        wait_until(lambda: len(machines.snapshot()["links"]) == 2)  # B's part comes by its relay
        seen = machines.snapshot()
        here, there = "site-of-here", "site-of-there"
        ways = [(link["from"], link["to"], link["via"]) for link in seen["links"]]
        assert ways == [(here, there, "direct"), (there, here, "direct")]
        assert all(link["count"] == 1 and link["rtt_s"] > 0 for link in seen["links"])
        assert [site["name"] for site in seen["sites"]] == [here, there]
        assert [site["processes"] for site in seen["sites"]] == [["A"], ["B"]]


def test_a_connection_through_gateways_is_shown(machines: Machines) -> None:
    with gateway(machines, "here"), gateway(machines, "there"):
        machines.process("B", "there", ANSWER)
        with sfm_kernel.join(machines.world, "A") as sfm:
            wait_until(lambda: sfm.route_kind("B") == "gateway")
            sfm.send(dest="B", tag="hello")
            sfm.recv(tag="answer")
            rows = [row for row in transport(sfm).exchange.connections() if row["gateway"]]
            uids = {member.name: member.uid for member in sfm.members()}
            assert [row["peers"] for row in rows] == [[uids["B"]]]
            wait_until(lambda: len(machines.snapshot()["links"]) == 2)
            seen = machines.snapshot()
            assert all(link["via"] == "gateway" and link["emulated"] for link in seen["links"])
            assert all("emulated" in link["sentence"] for link in seen["links"])
            assert [len(site["gateways"]) for site in seen["sites"]] == [1, 1]


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody answers: its listener has no room for another connection."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        yield f"tcp://127.0.0.1:{full.getsockname()[1]}"


def listed(machines: Machines, name: str, address: str) -> None:
    """Somebody joins on the machine "there"."""
    machines.observer.join(
        uid=secrets.token_hex(16), pid=1, host="x", segment="", name=name, address=address,
        site="site-of-there",
    )  # fmt: skip


def test_gateways_say_why_a_process_is_unreachable(machines: Machines, nowhere: str) -> None:
    def is_said(why: str) -> bool:
        text = rf"B has been unreachable for \d+ s: {why}; it may still be alive"
        return re.search(text, " ".join(machines.diagnosis()["sentences"])) is not None

    with gateway(machines, "here"), gateway(machines, "there") as last:
        with sfm_kernel.join(machines.world, "A") as sfm:
            listed(machines, "B", nowhere)
            wait_until(lambda: sfm.route_kind("B") == "gateway")
            sfm.send(dest="B", n=1)
            waiter = threading.Thread(target=wait_for_ever, args=(sfm, "B"))
            waiter.start()
            wait_until(lambda: is_said("no gateway of its site is connected to it"))
            last.send_signal(signal.SIGSTOP)
            wait_until(lambda: is_said("no gateway of its site can be reached"))
            last.kill()
            wait_until(lambda: is_said("its machine, or the network to it, is down"))
            sfm.close()
            waiter.join()


UNPLUGGED = """
import subprocess
from tests.zmq.sockets import deafen, is_listening, own_sockets, port
deafen(port(sfm))
for listener in own_sockets(port(sfm)):
    if is_listening(listener):
        print(subprocess.Popen(["sleep", "1000"], pass_fds=[listener.fileno()]).pid, flush=True)
sfm.send(dest="A")
sfm.recv()
"""
"""A process that is reached through its gateway only. No connection is refused, not even when it is
dead, since another process has the socket that it listens on: only its machine's relay can tell."""


@pytest.mark.fault
def test_a_process_killed_behind_a_gateway_is_lost(machines: Machines) -> None:
    with gateway(machines, "here"), gateway(machines, "there"):
        with sfm_kernel.join(machines.world, "A") as sfm:
            b = machines.process("B", "there", UNPLUGGED)
            assert b.stdout is not None
            holder = int(b.stdout.readline())
            try:
                sfm.recv(src="B")
                assert sfm.route_kind("B") == "gateway"
                wait_until(machines.known_relays)
                b.kill()
                with pytest.raises(PeerLost, match="'B'"):
                    sfm.recv(src="B")
                with pytest.raises(PeerLost, match="'B'"):
                    sfm.send(dest="B")
            finally:
                os.kill(holder, signal.SIGKILL)


def wait_for_ever(sfm: Endpoint, name: str) -> None:
    with contextlib.suppress(EndpointClosed):
        sfm.recv(src=name)


def test_a_process_that_is_given_up_is_reported_with_the_reason(
    machines: Machines, nowhere: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFM_UNREACHABLE", "1")
    with gateway(machines, "here"), gateway(machines, "there"):
        with sfm_kernel.join(machines.world, "A") as sfm:
            listed(machines, "B", nowhere)
            wait_until(lambda: sfm.route_kind("B") == "gateway")
            sfm.send(dest="B", n=1)
            with pytest.raises(PeerLost, match="SFM_UNREACHABLE; no gateway of its site is conn"):
                sfm.recv(src="B")
