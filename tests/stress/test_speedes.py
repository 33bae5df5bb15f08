"""SpeedesComm between processes: much traffic, many cycles and barriers, a node that is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import Endpoint, PeerLost
from sfm_kernel.directory import clean
from sfm_kernel.speedes import SpeedesComm, start_up
from tests.conftest import Spawn

pytestmark = pytest.mark.timeout(600)


def test_every_stream_is_complete_whole_and_in_order(kind: str, effort: int) -> None:
    """Random sizes and sets; large ones are written once, and their memory is used again."""

    def work(sfm: Endpoint, seed: int, count: int) -> int:
        with start_up(sfm) as comm:
            me, n = comm.get_node_id(), comm.get_num_nodes()
            rng = random.Random(seed * 100 + me)
            last = dict.fromkeys(range(n), -1)  # the number of the last message from each node
            sent, seen = Counter[int](), Counter[int]()

            def receive_all() -> None:
                while (message := comm.receive(7)) is not None:
                    number = int.from_bytes(message.data[:4], "big")
                    assert number > last[message.src]
                    assert message.data[4:] == bytes([number % 251]) * (message.nbytes - 4)
                    last[message.src] = number
                    seen[message.src] += 1

            for number in range(count):
                dests = rng.sample(range(n), rng.randint(1, n))
                size = rng.choice([0, 1, 100, 5_000, 140_000, 300_000])
                comm.multicast(dests, 7, number.to_bytes(4, "big") + bytes([number % 251]) * size)
                sent.update(dests)
                if rng.random() < 0.3:
                    receive_all()
            for dest in range(n):
                comm.send(dest, 8, sent[dest].to_bytes(4, "big"))
            totals: dict[int, int] = {}
            while len(totals) < n or seen != Counter(totals):
                receive_all()
                if (message := comm.receive(8)) is not None:
                    totals[message.src] = int.from_bytes(message.data, "big")
            comm.barrier_sync()
            return comm.global_sum(sum(sent.values())) - comm.global_sum(sum(seen.values()))

    for seed in range(effort):
        assert sfm_kernel.run(work, 4, seed, 80, timeout=600) == [0] * 4


def test_many_coordinated_cycles(kind: str, effort: int) -> None:
    """Trees of messages that grow at random; their sizes are known to all in the end."""

    def work(sfm: Endpoint, cycles: int) -> int:
        with start_up(sfm) as comm:
            me, n = comm.get_node_id(), comm.get_num_nodes()
            rng = random.Random(me)
            every = 0
            for cycle in range(cycles):
                sent = received = 0
                if rng.random() < 0.6:
                    comm.coordinated_broadcast(np.array([cycle, 3]))
                    sent += n
                while (message := comm.coordinated_receive()) is not None:
                    received += 1
                    number, left = message.data[-2:].tolist()
                    assert number == cycle
                    for dest in rng.choices(range(n), k=rng.randrange(3) if left else 0):
                        size = rng.choice([2, 2, 20_000])
                        comm.coordinated_send(dest, np.resize([cycle, left - 1], size))
                        sent += 1
                every += comm.global_sum(sent)
                assert comm.global_sum(received) == comm.global_sum(sent)
            return every

    totals = sfm_kernel.run(work, 5, 60 * effort, timeout=900)
    assert len(set(totals)) == 1 and totals[0] > 60 * effort


@pytest.mark.parametrize("n", [3, 17])
def test_messages_sent_before_a_fuzzy_barrier_are_there_after_it(n: int, effort: int) -> None:
    """With 17 nodes, messages go along a tree: it is true for neighbours in the tree only."""

    def work(sfm: Endpoint, rounds: int) -> int:
        with start_up(sfm) as comm:
            parent = comm._post.tree.parent
            near = [*range(3)] if n == 3 else [] if parent is None else [parent]
            there = Counter[int]()
            polls = 0
            for number in range(rounds):
                comm.broadcast(1, number.to_bytes(4, "big"))
                comm.enter_fuzzy_barrier()
                while not comm.exit_fuzzy_barrier():
                    polls += 1
                while (message := comm.get_pending_message(1)) is not None:
                    there[message.src] = int.from_bytes(message.data, "big")
                assert all(there[src] >= number for src in near)
            return polls

    assert len(sfm_kernel.run(work, n, 50 * effort if n == 3 else 10, timeout=600)) == n


def interrupted(sfm: Endpoint, rounds: int) -> tuple[int, list[str]]:
    """Node 1 gets Stop at any moment of its cycles, and goes on as long as it is whole.

    Returns how often it was stopped, and the errors that ended rounds early.
    """
    rng = random.Random(sfm.rank)
    stops, ends = 0, list[str]()
    lasted = 0.0025  # the latest cycle, in seconds: Stop is to come while one runs

    def cycle(comm: SpeedesComm) -> int:
        nonlocal stops, lasted
        number = comm._coordinated._cycle
        began = time.perf_counter()

        def is_over() -> bool:
            return comm._coordinated._cycle != number or bool(comm._post.atomic.broken)

        def stop(*_: object) -> None:
            if not is_over():
                raise KeyboardInterrupt

        got, sent = 0, False
        while True:
            try:
                if sfm.rank == 1:
                    signal.signal(signal.SIGALRM, stop)
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00002, 2 * lasted))
                if not sent:
                    sent = True
                    comm.coordinated_broadcast(bytes(rng.choice([10, 150_000])))
                while comm.coordinated_receive() is not None:
                    got += 1
                lasted = time.perf_counter() - began
                return got
            except KeyboardInterrupt:
                stops += 1
                if comm._coordinated._cycle != number:
                    return got  # it came when the call had just returned

    sfm.send(dest=sfm.rank, x=np.zeros(3))  # a process's first array imports modules
    assert not sfm.recv(10).x.any()
    for _ in range(rounds):
        with start_up(sfm) as comm:
            try:
                for _ in range(4):
                    assert cycle(comm) <= comm.get_num_nodes()
                assert comm.global_sum(1) == comm.get_num_nodes()
            except sfm_kernel.SFMError as error:
                ends.append(str(error))
    return stops, ends


@pytest.mark.parametrize("n", [2, 4])
def test_stop_at_any_moment_leaves_nobody_waiting(kind: str, effort: int, n: int) -> None:
    found = sfm_kernel.run(interrupted, n, 16 * effort, timeout=600)
    assert found[1][0] > 0, "nothing was interrupted"
    for node, (_, ends) in enumerate(found):
        assert len(ends) == len(found[1][1])  # all hear of each
        # The node that hears of it first leaves, and another may miss that node.
        reason = "KeyboardInterrupt has ended a call in" if node == 1 else "has ended"
        assert [text for text in ends if reason not in text] == []


NODE = """
import sys
import sfm_kernel
from sfm_kernel.speedes import start_up

sfm = sfm_kernel.join(sys.argv[1], rank=int(sys.argv[2]))
comm = start_up(sfm, total_nodes=4)
print("started", flush=True)
try:
    while True:
        comm.broadcast(1, bytes(200_000))
        comm.coordinated_broadcast(bytes(150_000))
        while comm.coordinated_receive() is not None:
            pass
        while comm.receive(1) is not None:
            pass
except sfm_kernel.PeerLost as lost:
    print("lost", lost.peer, flush=True)
comm.close()
sfm.close()
"""


Nodes = tuple[SpeedesComm, list[subprocess.Popen[str]]]


@pytest.fixture
def nodes(world: str, spawn: Spawn) -> Iterator[Nodes]:
    """Node 0 of four, and the processes of the others, which send without end."""
    with sfm_kernel.join(world, rank=0) as sfm:
        started = [spawn(NODE, world, rank, stdout=subprocess.PIPE, text=True) for rank in "123"]
        with start_up(sfm, total_nodes=4) as comm:
            yield comm, started


@pytest.mark.fault
@pytest.mark.parametrize("after", [1, 7])
def test_a_node_that_is_killed_is_lost_to_all_and_leaves_nothing(nodes: Nodes, after: int) -> None:
    comm, processes = nodes

    def work() -> None:
        for cycle in range(1_000_000):
            if cycle == after:
                os.kill(processes[2].pid, signal.SIGKILL)
            comm.coordinated_broadcast(bytes(150_000))
            while comm.coordinated_receive() is not None:
                pass
            while comm.receive(1) is not None:
                pass

    with pytest.raises(PeerLost):
        work()
    for process in processes[:2]:
        # The node that hears of it first leaves, and another may miss that node.
        assert process.communicate(timeout=60)[0] in [f"started\nlost {n}\n" for n in range(4)]
    clean()
    # Files of multicasts that remain belong to this process, which lives.
    left = Path(comm._sfm.folder).glob("*.multicast*")
    assert {path.name.partition(".")[0] for path in left} <= {comm._sfm.uid}
