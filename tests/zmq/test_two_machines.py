"""Collectives between two machines, which are folders: members 0, 1, 4 here and 2, 3 there.

The machines are one site, or two. ``test_sites`` has more of them.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfm_kernel import CollectiveError, CollectiveMismatch, Endpoint, Group, PeerLost
from sfm_kernel.collectives import ALGORITHMS
from tests.contract.conftest import Background
from tests.contract.crowd import outcome
from tests.zmq.machines import spread

pytestmark = pytest.mark.zmq

THERE = (2, 3)


@pytest.fixture(params=[False, True], ids=["one site", "two sites"])
def members(
    request: pytest.FixtureRequest, world: str, sfm_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Endpoint]]:
    there = [rank in THERE for rank in range(5)]
    places = [("there" if far else "here", "far" if far and request.param else "") for far in there]
    with spread(places, world, sfm_dir, monkeypatch) as ends:
        assert ends[0].route_kind(1) == "shm" and ends[0].route_kind(2) == "zmq"
        yield ends


def at_all(members: list[Endpoint], program: Callable[[Group], Any]) -> list[Any]:
    running = [Background(lambda sfm=sfm: program(Group(sfm))) for sfm in members]
    return [outcome(call) for call in running]


def test_two_levels_give_what_one_gives(members: list[Endpoint]) -> None:
    def compare(group: Group) -> None:
        assert not group.is_local
        for call in ("two-level", None, *ALGORITHMS["allreduce"][1:-1]):
            summed = group.allreduce(np.arange(20_000) * (group.rank + 1), algorithm=call)
            assert np.array_equal(summed, np.arange(20_000) * 15), call
            if call not in ("ring", "rabenseifner"):
                assert group.allreduce(group.rank, max, algorithm=call) == 4
        for root in range(5):
            value = {"root": root, "data": "x" * 5000} if group.rank == root else None
            got = group.bcast(value, root, algorithm="two-level")
            assert got == {"root": root, "data": "x" * 5000}
            total = group.reduce(2.5, root=root, algorithm="two-level")
            assert total == (12.5 if group.rank == root else None)
        assert group.allgather(str(group.rank), algorithm="two-level") == list("01234")
        group.barrier(algorithm="two-level")
        with pytest.raises(ValueError, match="flags need memory that all members share"):
            group.barrier(algorithm="flags")
        group.barrier()  # all have refused it, and go on

    assert not any(at_all(members, compare))


def test_over_the_network_go_messages_of_representatives_only(members: list[Endpoint]) -> None:
    def teams(group: Group) -> list[list[Any]]:
        group.allreduce(1, algorithm="two-level")
        inner = group._team.inner
        return [inner[level].names for level in ("inside", "between") if level in inner]

    here, there, heads = [0, 1, 4], [2, 3], [0, 2]
    assert at_all(members, teams) == [[here, heads], [here], [there, heads], [there], [here]]


def test_failures_reach_both_machines(members: list[Endpoint]) -> None:
    def mismatch(group: Group) -> Any:
        if group.rank == 3:
            return group.allreduce(1, algorithm="two-level")
        return group.allreduce(1.5, max, algorithm="two-level")

    results = at_all(members, mismatch)
    assert all(isinstance(result, CollectiveError) for result in results), results
    assert any(isinstance(result, CollectiveMismatch) for result in results)

    def raising(group: Group) -> Any:
        return group.allreduce([group.rank], lambda a, b: a[9], algorithm="two-level")

    results = at_all(members, raising)
    assert all(isinstance(result, CollectiveError | IndexError) for result in results), results
    assert at_all(members, lambda group: group.allreduce(1, algorithm="two-level")) == [5] * 5


def test_death_and_stop_reach_both_machines(members: list[Endpoint]) -> None:
    groups = at_all(members, lambda group: group)
    others = [Background(partial(group.barrier, algorithm="two-level")) for group in groups[1:4]]
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        groups[0].barrier(algorithm="two-level")  # member 4 has not come
    timer.join()
    ends = [outcome(call) for call in others]
    assert all(isinstance(end, CollectiveError) and "Interrupt" in str(end) for end in ends), ends

    groups = at_all(members, lambda group: group)
    waiting = [
        Background(partial(group.barrier, algorithm="two-level"))
        for rank, group in enumerate(groups)
        if rank != 3
    ]
    members[3].close()
    results = [outcome(call) for call in waiting]
    assert all(isinstance(result, PeerLost) and result.peer == 3 for result in results), results
