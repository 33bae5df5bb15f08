"""Small messages without end to a receiver that does not keep up."""

from __future__ import annotations

import time

import pytest

import sfm_kernel
from sfm_kernel import Endpoint
from sfm_kernel.observe.snapshot import snapshot

pytestmark = pytest.mark.timeout(3600)

ALLOWANCE = 24 << 10
"""kB that a process may grow for 1 MiB of buffering from each of three senders: several times what
is needed, and far less than all messages of the short version together."""


def resident() -> int:
    """Private memory of this process, in kB."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def states(sfm: Endpoint) -> dict[object, str]:
    return {process["rank"]: process["state"] for process in snapshot(sfm.folder)["processes"]}


def work(sfm: Endpoint, count: int) -> int:
    """Ranks above 0 send ``count`` numbered messages each; rank 0 receives them, in no hurry.

    Returns how much the process has grown, in kB.
    """
    sfm.buffering = 1 << 20
    before = resident()
    if sfm.rank:
        for n in range(count):
            sfm.send(dest=0, n=n, text="some two hundred bytes" * 10)
            if n % 1000 == 0:
                assert resident() - before < ALLOWANCE
        return resident() - before
    senders = range(1, sfm.size)
    # Before anything is received, all senders come to a halt, and observers see why.
    while not all(states(sfm)[rank] == "blocked in send" for rank in senders):
        time.sleep(0.01)
    expected = dict.fromkeys(senders, 0)
    for n in range(count * len(senders)):
        m = sfm.recv(60)
        assert m.n == expected[m.src], "lost or out of order"
        expected[m.src] += 1
        if n % 1000 == 0:
            time.sleep(0.001)
            assert resident() - before < ALLOWANCE
    assert not sfm.peek(), "more than was sent"
    return resident() - before


@pytest.mark.parametrize("senders", [1, 3])
def test_a_slow_receiver_holds_its_senders_back(kind: str, effort: int, senders: int) -> None:
    grown = sfm_kernel.run(work, 1 + senders, 20_000 * effort // senders, timeout=3000)
    assert max(grown) < ALLOWANCE


def test_small_messages_in_every_order(kind: str, effort: int) -> None:
    """Receives go from the last tag to the first: messages that they skip stay in order."""

    def shuffled(sfm: Endpoint, rounds: int) -> None:
        for turn in range(rounds):
            if sfm.rank:
                for n in range(300):
                    sfm.send(dest=0, turn=turn, tag=n % 10, n=n)
            else:
                for tag in reversed(range(10)):
                    got = [sfm.recv(60, tag=tag).n for _ in range(30)]
                    assert got == list(range(tag, 300, 10))

    sfm_kernel.run(shuffled, 2, 10 * effort, timeout=3000)
