"""Random states of a world: processes that wait for each other, compute, or have ended.

The same processes go through many rounds. They and the observer synchronise through files: if the
observer could send messages, no process would be stuck.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from sfm_kernel import DeadlockDetected, Endpoint, WouldBlock


@dataclass
class Round:
    """The state of each process until it is released, by rank.

    Attributes:
        waits: the rank that it waits for, perhaps itself; None: a message from any process.
        sends: the processes whose wait is a send that blocks until it is received.
        ended: the processes whose program has come to its end. All others that do not wait compute.
        cycle: the processes that wait for each other, in that order.
        stuck: all processes that cannot go on.
    """

    waits: dict[int, int | None] = field(default_factory=dict)
    sends: set[int] = field(default_factory=set)
    ended: set[int] = field(default_factory=set)
    cycle: list[int] = field(default_factory=list)
    stuck: set[int] = field(default_factory=set)


def make(seed: str, size: int) -> Round:
    """A random round: at most one cycle, and other processes in random states around it."""
    chance = random.Random(seed)
    ranks = chance.sample(range(size), size)
    made = Round(cycle=[ranks.pop() for _ in range(chance.randint(0, min(5, size)))])
    made.stuck |= set(made.cycle)
    for nth, rank in enumerate(made.cycle):
        made.waits[rank] = made.cycle[(nth + 1) % len(made.cycle)]
    free: set[int] = set()
    anybody = []
    for rank in ranks:
        kind = chance.choice(["victim", "victim", "waiting", "waiting", "anybody", "ended", "free"])
        if kind == "victim" and (hopeless := made.stuck | made.ended):
            made.waits[rank] = chance.choice(sorted(hopeless))
            made.stuck.add(rank)
        elif kind == "waiting" and free:
            made.waits[rank] = chance.choice(sorted(free))
            free.add(rank)
        elif kind == "anybody" and made.cycle:
            anybody.append(rank)
        elif kind == "ended":
            made.ended.add(rank)
        else:
            free.add(rank)
    made.waits |= dict.fromkeys(anybody)
    if not free:
        made.stuck |= set(anybody)
    known = [rank for rank, peer in made.waits.items() if peer is not None]
    made.sends = {rank for rank in known if chance.random() < 0.4}
    return made


def play(sfm: Endpoint, rounds: list[Round], folder: str) -> int:
    """Play this process's part of all rounds; return the number of deadlocks that it got."""
    deadlocks = 0
    for nth, round_ in enumerate(rounds):
        _wait_for(Path(folder, f"{nth} begins"))
        with contextlib.suppress(WouldBlock):
            while True:  # drop the messages of earlier rounds
                sfm.recv_nb(round=lambda number, now=nth: number < now)
        try:
            if sfm.rank in round_.waits:
                _wait(sfm, nth, round_)
            else:
                sfm.show_running(sfm.rank not in round_.ended)
                _wait_for(Path(folder, f"{nth} ends"))
                sfm.show_running(True)
        except DeadlockDetected:
            deadlocks += 1
        else:
            _release(sfm, nth, round_)
        Path(folder, f"{nth} done by {sfm.rank}").touch()
    return deadlocks


def _wait(sfm: Endpoint, nth: int, round_: Round) -> None:
    peer = round_.waits[int(sfm.rank or 0)]
    if sfm.rank in round_.sends:
        sfm.with_buffering(0).send(dest=peer, round=nth, what="parcel")
    elif peer is None:
        sfm.recv(round=nth, what="token")
    else:
        sfm.recv(src=peer, round=nth, what="token")


def _release(sfm: Endpoint, nth: int, round_: Round) -> None:
    """Release the processes that wait for this one."""
    for rank, peer in round_.waits.items():
        if rank in round_.stuck:
            continue
        if rank in round_.sends and peer == sfm.rank:
            sfm.recv(src=rank, round=nth, what="parcel")
        elif peer in (sfm.rank, None) and rank != sfm.rank:
            sfm.send(dest=rank, round=nth, what="token")


def _wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.005)
