"""Nothing is sent to the dead, from the first moment on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost

ECHO = """
import sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "V")
sfm.wait_for("home")
sfm.send(dest="home", ready=True)
while True: sfm.send(dest="home", echo=sfm.recv(src="home").n)
"""


def start(survivor: Endpoint) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", ECHO, survivor.world])
    assert survivor.recv(20, ready=True).src == "V"
    return process


def exchange(survivor: Endpoint, n: int) -> None:
    survivor.send(dest="V", n=n)
    assert survivor.recv(20, src="V").echo == n


@pytest.mark.parametrize("size", [0, 100_000, 5_000_000])
def test_the_first_send_after_a_death_says_so(survivor: Endpoint, size: int) -> None:
    with start(survivor) as victim:
        for n in range(3):
            exchange(survivor, n)
        victim.kill()
        victim.wait()
        with pytest.raises(PeerLost):
            survivor.send(dest="V", data=np.zeros(size, np.uint8))


def test_an_answer_goes_to_its_asker_and_not_to_a_predecessor(survivor: Endpoint) -> None:
    with start(survivor) as first:
        exchange(survivor, 1)
        first.kill()
    with start(survivor) as second:
        exchange(survivor, 2)
        second.kill()


def test_a_stopped_process_is_not_taken_for_dead(survivor: Endpoint) -> None:
    with start(survivor) as sleeper:
        exchange(survivor, 1)
        os.kill(sleeper.pid, signal.SIGSTOP)
        for n in range(100):
            survivor.send(dest="V", n=n)
        os.kill(sleeper.pid, signal.SIGCONT)
        assert [survivor.recv(20, src="V").echo for _ in range(100)] == list(range(100))
        sleeper.kill()


def test_a_fork_that_ends_is_not_the_death_of_its_parent(survivor: Endpoint) -> None:
    """The child has a copy of everything but the threads."""
    with sfm_kernel.join(survivor.world, "parent") as parent:
        survivor.send(dest="parent", n=1)
        pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        survivor.send(dest="parent", n=2)
        assert [parent.recv(20).n for _ in range(2)] == [1, 2]


SENDER = """
import os, sys
import numpy as np
import sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "V")
sfm.wait_for("home")
for n in range(20): sfm.send(dest="home", n=n, x=np.full(1 << 20, n, np.uint8))
sfm.send(dest="home", done=True)
os.kill(os.getpid(), 9)
"""


def test_arrays_outlive_their_sender_and_its_successor(survivor: Endpoint) -> None:
    kept = []
    for _ in range(2):
        with subprocess.Popen([sys.executable, "-c", SENDER, survivor.world]) as victim:
            assert survivor.recv(20, done=True).src == "V"
            victim.wait()
        kept += [survivor.recv(20, src="V").x for _ in range(20)]
        with pytest.raises(PeerLost):
            survivor.recv(20, src="V")
    for n, x in enumerate(kept):
        assert (x == n % 20).all()
        x += 1
    assert all((x == n % 20 + 1).all() for n, x in enumerate(kept))
