"""Processes die at any moment: peers hear of it, and nothing is wedged, corrupted or lost."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from tests.conftest import KINDS, Spawn
from tests.sites.through import TwoSites, two_sites

CHILD = """
import sys, time, os
import sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
sfm.wait_for("home")
{body}
"""
READY = "sfm.send(dest='home', ready=True)\n"

GATEWAY = pytest.param("gateway", marks=pytest.mark.zmq)
also_through_gateways = pytest.mark.parametrize("kind", [*KINDS, GATEWAY], indirect=True)


@pytest.fixture
def sites(kind: str, world: str, sfm_dir: Path) -> Iterator[TwoSites | None]:
    """Home is at site a, and the others are at site b, if there are gateways."""
    if kind != "gateway":
        yield None
        return
    with two_sites(world, sfm_dir) as made:
        made.add_gateway("a")
        made.add_gateway("b")
        yield made


@pytest.fixture
def home(sites: TwoSites | None, world: str) -> Iterator[Endpoint]:
    join = partial(sites.join, "a") if sites else partial(sfm_kernel.join, world)
    with join("home", guest=True) as endpoint:
        yield endpoint


Start = Callable[[str, str], subprocess.Popen[bytes]]


@pytest.fixture
def start(sites: TwoSites | None, world: str, spawn: Spawn) -> Start:
    """``start(name, body)``: a process that joins as ``name`` and runs ``body``."""
    environment = os.environ | (sites.environment("b") if sites else {})
    return lambda name, body: spawn(CHILD.format(body=body), world, name, env=environment)


@also_through_gateways
def test_a_blocked_recv_hears_of_the_death(home: Endpoint, start: Start) -> None:
    victim = start("V", READY + "time.sleep(60)")
    assert home.recv(20, src="V").ready
    os.kill(victim.pid, signal.SIGKILL)
    with pytest.raises(PeerLost, match="'V'") as caught:
        home.recv(20, src="V")
    assert caught.value.peer == "V"


@also_through_gateways
def test_messages_of_a_dead_process_are_received(home: Endpoint, start: Start) -> None:
    start(
        "V",
        f"{READY}sfm.recv(src='home')\n"
        "for n in range(100): sfm.send(dest='home', n=n, pad=bytes(1000))\n"
        "time.sleep(0.5)\nos.kill(os.getpid(), 9)",
    )
    assert home.recv(20, src="V").ready  # over TCP: there is a connection
    home.send(dest="V")
    assert [home.recv(20, src="V").n for _ in range(100)] == list(range(100))
    with pytest.raises(PeerLost):
        home.recv(20, src="V")


@pytest.mark.parametrize("end", ["sfm.close()", "os.kill(os.getpid(), 9)"])
def test_messages_of_a_dead_process_are_received_after_slow_callbacks(
    home: Endpoint, start: Start, end: str
) -> None:
    home.regcb(lambda m: time.sleep(3), tag="slow")
    start(
        "V",
        f"{READY}sfm.recv(src='home')\n"
        "sfm.send(dest='home', tag='slow')\nsfm.send(dest='home', tag='result', n=1)\n"
        f"time.sleep(0.5)\n{end}",
    )
    assert home.recv(20, src="V").ready
    home.send(dest="V")
    assert home.recv(20, src="V", tag="result").n == 1, "callbacks are asked first"


@also_through_gateways
def test_sending_to_the_dead(home: Endpoint, start: Start) -> None:
    victim = start("V", READY + "time.sleep(60)")
    home.recv(20, src="V")
    home.send(dest="V", n=1)
    victim.kill()
    victim.wait()

    def go_on_sending() -> None:
        for _ in range(2000):
            home.send(dest="V", n=2)
            time.sleep(0.01)

    with pytest.raises(PeerLost, match="'V'"):
        go_on_sending()


@also_through_gateways
def test_a_blocked_send_hears_of_the_death(home: Endpoint, start: Start) -> None:
    victim = start("V", READY + "time.sleep(60)")
    home.recv(20, src="V")
    home.buffering = 10_000
    home.send(dest="V", data=bytes(9_000))
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.3; kill -9 {victim.pid}"])
    with pytest.raises(PeerLost):
        home.send(dest="V", data=bytes(9_000))
    killer.wait()


@also_through_gateways
def test_leaving_is_not_dying_but_ends_waits_too(home: Endpoint, start: Start) -> None:
    start("V", "sfm.send(dest='home', last='words')\nsfm.close()")
    assert home.recv(20, src="V").last == "words"
    with pytest.raises((PeerLost, sfm_kernel.RecvTimeout)):
        home.recv(5, src="V")
    with pytest.raises((PeerLost, sfm_kernel.UnknownName)):
        home.send(dest="V")


@also_through_gateways
def test_a_stopped_process_is_not_dead(home: Endpoint, start: Start) -> None:
    sleeper = start("V", READY + "sfm.send(dest='home', got=sfm.recv().n)")
    home.recv(20, src="V")
    os.kill(sleeper.pid, signal.SIGSTOP)
    home.send(dest="V", n=5)
    with pytest.raises(sfm_kernel.RecvTimeout):
        home.recv(2.5, src="V")
    os.kill(sleeper.pid, signal.SIGCONT)
    assert home.recv(20, src="V").got == 5


@also_through_gateways
def test_a_restarted_process_takes_its_old_rank_and_name(home: Endpoint, start: Start) -> None:
    body = (
        "sfm.send(dest='home', rank=sfm.rank)\n"
        "sfm.send(dest='home', got=sfm.recv().n)\ntime.sleep(60)"
    )
    start("first", "time.sleep(60)")
    home.wait_for("first", timeout=20)
    victim = start("V", body)
    rank = home.recv(20, src="V").rank
    home.send(dest="V", n=1)
    assert home.recv(20, src="V", got=1)
    victim.kill()
    victim.wait()
    start("V", body)
    home.wait_for("V", timeout=20)
    assert home.recv(20, rank=rank).src == "V"
    home.send(dest="V", n=2)
    home.send(dest=rank, n=3)
    assert home.recv(20, src=rank, got=2).src == "V"


@pytest.mark.timeout(300)
def test_killed_at_any_moment(home: Endpoint, start: Start, effort: int) -> None:
    """Kill a process that sends small and large messages at random moments, again and again.

    All messages that arrive are whole and in order, and the survivor goes on with the others.
    """
    rng = random.Random(7)
    start("steady", "while True: sfm.send(dest='home', echo=sfm.recv(src='home').n)")
    home.wait_for("steady", timeout=20)
    body = (
        "n = 0\nwhile True:\n"
        "    sfm.send(dest='home', n=n, data=bytes([n % 251]) * (n * 7919 % 300_000))\n    n += 1"
    )
    for turn in range(6 * effort):
        victim = start("V", body)
        home.wait_for("V", timeout=20)  # the last one's successor
        first = home.recv(20, src="V")
        assert first.n == 0
        time.sleep(rng.random() * 0.1)
        victim.kill()
        victim.wait()
        expected = 1
        try:
            while True:
                m = home.recv(20, src="V")
                assert m.n == expected
                assert m.data == bytes([m.n % 251]) * (m.n * 7919 % 300_000)
                expected += 1
        except PeerLost:
            pass
        home.send(dest="steady", n=turn)
        assert home.recv(20, src="steady").echo == turn


def flood(home: Endpoint) -> None:
    for n in itertools.count():
        home.send(dest="V", n=n, data=bytes(n * 7919 % 300_000))


@pytest.mark.timeout(300)
def test_a_receiver_killed_at_any_moment(home: Endpoint, start: Start, effort: int) -> None:
    rng = random.Random(8)
    for _ in range(6 * effort):
        victim = start("V", READY + "while True: sfm.recv()")
        home.wait_for("V", timeout=20)
        assert home.recv(20, src="V").ready
        killer = subprocess.Popen(
            ["sh", "-c", f"sleep {rng.random() * 0.2:.3f}; kill -9 {victim.pid}"]
        )
        with pytest.raises(PeerLost):
            flood(home)
        killer.wait()
        victim.wait()


@also_through_gateways
def test_a_forked_child_does_not_keep_its_parent_alive(home: Endpoint, start: Start) -> None:
    victim = start(
        "V",
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    try:\n        sfm.send(dest='home', child=True)\n"
        "    except sfm_kernel.EndpointClosed:\n        pass\n"
        "    time.sleep(60)\n    os._exit(0)\n"
        "sfm.send(dest='home', child=pid)\ntime.sleep(60)",
    )
    child = home.recv(20, src="V").child
    assert child is not True
    victim.kill()
    victim.wait()
    try:
        with pytest.raises(PeerLost):
            home.recv(20, src="V")
    finally:
        os.kill(child, signal.SIGKILL)
