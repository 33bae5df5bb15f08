"""The promises under signals, stops and threads: nothing is lost, torn, doubled or reordered."""

from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from tests.conftest import Spawn

pytestmark = pytest.mark.timeout(1800)


def sizes(seed: int, count: int) -> list[int]:
    rng = random.Random(seed)
    return [rng.choice([10, 5_000, 400_000, 3_000_000]) for _ in range(count)]


def interrupted_sender(sfm: Endpoint, count: int) -> int:
    """Rank 1 is interrupted again and again while it sends, and repeats each interrupted send."""
    if sfm.rank == 0:
        expected = doubled = 0
        while expected < count:
            m = sfm.recv(60, src=1)
            assert (m.x == m.n % 251).all() and len(m.x) == m.size, "torn"
            if m.n == expected - 1:
                doubled += 1  # the interrupt came when it was sent, before the loop knew
            else:
                assert m.n == expected, "lost or out of order"
                expected += 1
        sfm.send(dest=1, done=True)
        return doubled
    sfm.buffering = 4 << 20
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    interrupts = 0
    rng = random.Random(5)
    for n, size in enumerate(sizes(1, count)):
        x = np.full(size, n % 251, np.uint8)
        longest = 0.003  # grows, or a slow machine would interrupt every attempt
        while True:
            longest *= 1.5
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, longest))
                sfm.send(dest=0, n=n, size=size, x=x)
                signal.setitimer(signal.ITIMER_REAL, 0)
                break
            except KeyboardInterrupt:
                interrupts += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert sfm.recv(60, src=0).done
    return interrupts


def test_an_interrupted_sender(kind: str, effort: int) -> None:
    doubled, interrupts = sfm_kernel.run(interrupted_sender, 2, 150 * effort, timeout=1500)
    assert interrupts > 0, "nothing was interrupted"
    assert doubled <= interrupts


def harassed_receiver(sfm: Endpoint, count: int) -> int:
    """Rank 0 gets signals all the time; those while it waits for nobody end that wait."""
    if sfm.rank:
        for n, size in enumerate(sizes(2, count)):
            sfm.send(dest=0, n=n, x=np.full(size, n % 251, np.uint8))
        return 0
    signals = 0

    def count_it(*_: object) -> None:
        nonlocal signals
        signals += 1

    signal.signal(signal.SIGALRM, count_it)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    for n, size in enumerate(sizes(2, count)):
        m = sfm.recv(60, src=1)
        assert m.n == n and len(m.x) == size and (m.x == n % 251).all()
    waiting = False

    def stop(*_: object) -> None:
        nonlocal waiting
        if waiting:  # once for each wait: not in the midst of this test's own lines
            waiting = False
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    for _ in range(20):
        try:
            waiting = True
            sfm.recv(60, tag="never")
        except KeyboardInterrupt:
            continue
        raise AssertionError("the wait was not interrupted")
    signal.setitimer(signal.ITIMER_REAL, 0)
    return signals


def test_a_harassed_receiver(kind: str, effort: int) -> None:
    assert sfm_kernel.run(harassed_receiver, 2, 100 * effort, timeout=1500)[0] > 0


STREAM = """
import sys
import numpy as np
import sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], sys.argv[2])
sfm.wait_for("home", "A", "B")
if sys.argv[2] == "A":
    for n in range(int(sys.argv[3])):
        sfm.send(dest="B", n=n, x=np.full((n * 7919) % 2_000_000, n % 251, np.uint8))
    sfm.recv(src="home")
else:
    for n in range(int(sys.argv[3])):
        m = sfm.recv(src="A")
        assert m.n == n and len(m.x) == (n * 7919) % 2_000_000 and (m.x == n % 251).all()
    sfm.send(dest="home", received=n + 1)
"""


def test_stopped_and_continued(kind: str, world: str, effort: int, spawn: Spawn) -> None:
    """Either side stands still at any time; neither is taken for dead."""
    count = 200 * effort
    rng = random.Random(3)
    with sfm_kernel.join(world, "home", guest=True) as home:
        a, b = (spawn(STREAM, world, name, str(count)) for name in ("A", "B"))
        home.wait_for("A", "B", timeout=30)
        while not home.peek(src="B"):
            pid = rng.choice([a, b]).pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(rng.uniform(0, 0.03))
            os.kill(pid, signal.SIGCONT)
            time.sleep(rng.uniform(0, 0.03))
            assert a.poll() is None, "the sender failed"
            assert b.poll() in (None, 0), "the receiver failed"
        assert home.recv(src="B").received == count
        home.send(dest="A", end=True)
        a.wait(60)


def threads(sfm: Endpoint, count: int) -> None:
    """Four threads of rank 1 send to rank 0, where four threads receive, each from its own."""

    def send(which: int) -> None:
        for n, size in enumerate(sizes(which, count)):
            sfm.send(dest=0, thread=which, n=n, x=np.full(size, (n + which) % 251, np.uint8))

    def receive(which: int) -> None:
        for n, size in enumerate(sizes(which, count)):
            m = sfm.recv(60, thread=which)
            assert m.n == n and len(m.x) == size and (m.x == (n + which) % 251).all()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send if sfm.rank else receive, range(4)))


def test_sends_from_several_threads(kind: str, effort: int) -> None:
    sfm_kernel.run(threads, 2, 60 * effort, timeout=1500)
