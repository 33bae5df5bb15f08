"""Members are killed in the middle of collectives: all others are told, and nothing is wedged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from typing import Any

import pytest

import sfm_kernel
from sfm_kernel import CollectiveError, Endpoint, Group, PeerLost
from sfm_kernel.collectives import ALGORITHMS
from tests.conftest import Spawn
from tests.contract.conftest import Background

pytestmark = pytest.mark.usefixtures("kind")  # chosen before the guest joins

MEMBER = """
import sys, os
import numpy as np
import sfm_kernel
from sfm_kernel import CollectiveError, Group, PeerLost
world, rank, size, algorithm = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
sfm = sfm_kernel.join(world, rank=rank)
sfm.wait_for(*range(size))
group = Group(sfm)
sfm.send(dest="home", pid=os.getpid())
data = np.arange(30_000.0) if algorithm in ("ring", "rabenseifner") else 1
try:
    for count in range(1_000_000):
        group.allreduce(data, algorithm=algorithm)
except (PeerLost, CollectiveError) as failure:
    sfm.send(dest="home", told=type(failure).__name__, peer=getattr(failure, "peer", None))
sfm.recv(src="home")
"""


CASES = [("shm", name) for name in ALGORITHMS["allreduce"]]
CASES += [("zmq", name) for name in ALGORITHMS["allreduce"] if name != "flags"]


@pytest.mark.parametrize(("kind", "algorithm"), CASES, indirect=["kind"])
def test_a_killed_member_is_lost_for_all_others(
    kind: str, algorithm: str, home: Endpoint, spawn: Spawn
) -> None:
    size, victim = 4, random.randrange(4)
    processes = [spawn(MEMBER, home.world, str(rank), str(size), algorithm) for rank in range(size)]
    for rank in range(size):
        home.recv(60, src=rank, pid=lambda _: True)
    time.sleep(random.uniform(0, 0.3))
    processes[victim].kill()
    for rank in set(range(size)) - {victim}:
        failure = home.recv(60, src=rank, told=lambda _: True)
        assert (failure.told, failure.peer) == ("PeerLost", victim), rank


def test_a_member_that_stands_still_is_waited_for(home: Endpoint, spawn: Spawn) -> None:
    """Stopped is not dead: the others wait, and go on when it does."""

    def reduce_twice(sfm: Endpoint) -> list[int]:
        group = Group(sfm)
        if sfm.rank == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        return [group.allreduce(1), group.allreduce(sfm.rank)]

    spawn(WAKER, str(os.getpid()), stdin=subprocess.DEVNULL)
    assert sfm_kernel.run(reduce_twice, n=3, timeout=100) == [[3, 3]] * 3


WAKER = """
import os, signal, sys, time
while True:  # wakes the stopped descendants of a process, each a second after it was stopped
    time.sleep(1.0)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state in "Tt" and parent == sys.argv[1]:
            os.kill(int(pid), signal.SIGCONT)
"""


def test_memory_of_groups_goes_with_their_world(home: Endpoint, world: str) -> None:
    """Boards and areas are files only until all members have them."""
    with sfm_kernel.join(world) as first, sfm_kernel.join(world) as second:
        members: list[Any] = [first, second]

        def meet(sfm: Endpoint) -> None:
            for _ in range(5):
                group = Group(sfm, [0, 1])
                group.barrier()
                group.allgather("x" * 100_000)

        for background in [Background(lambda sfm=sfm: meet(sfm)) for sfm in members]:
            background.result()
        assert not [file for file in os.listdir(home.folder) if file.endswith(".tree")]
        # One that never comes leaves a file; it goes when the first member does.
        group = Background(lambda: Group(first, [0, 1]))
        Group(second, [0, 1])
        waiting = Background(group.result().barrier)
        second.close()
        with pytest.raises((PeerLost, CollectiveError)):
            waiting.result()
