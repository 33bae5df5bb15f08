"""Every member learns of a failure in a collective, once, and the group goes on."""

from __future__ import annotations

import operator
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import (
    CollectiveError,
    CollectiveMismatch,
    Endpoint,
    EndpointClosed,
    Group,
    PeerLost,
    UnknownName,
)
from sfm_kernel.collectives import ALGORITHMS, meeting
from tests.contract.conftest import Background, results
from tests.contract.crowd import Crowd, crowd_of, outcome
from tests.waiting import wait_until

N = 3


@pytest.fixture
def crowd(kind: str, world: str) -> Iterator[Crowd]:
    with crowd_of(world, N) as made:
        yield made


def goes_on(crowd: Crowd, groups: list[Group] | None = None) -> None:
    """The same groups work again, and new ones."""
    again = [Background(partial(group.allreduce, group.rank)) for group in groups or ()]
    assert results(again) == [N * (N - 1) // 2] * len(again)
    assert crowd.run(lambda group: group.allreduce(group.rank)) == [N * (N - 1) // 2] * N


Call = Callable[[Group], Any]

MISMATCHES: dict[str, tuple[Call, Call]] = {
    "calls": (lambda group: group.bcast(1, 0), lambda group: group.reduce(1)),
    "calls of all": (lambda group: group.barrier(), lambda group: group.allreduce(1)),
    "memory and messages": (
        lambda group: group.allgather(1),
        lambda group: group.alltoall([1] * N),
    ),
    "algorithms": (
        lambda group: group.allreduce(1),
        lambda group: group.allreduce(1, algorithm="linear"),
    ),
    "roots": (
        lambda group: group.gather(1, root=0, algorithm="linear"),
        lambda group: group.gather(1, root=2, algorithm="linear"),
    ),
    "operations": (
        lambda group: group.allreduce(1, max),
        lambda group: group.allreduce(1, operator.add),
    ),
    "shapes": (
        lambda group: group.allreduce(np.ones(3)),
        lambda group: group.allreduce(np.ones(4)),
    ),
    "types": (
        lambda group: group.allreduce(np.ones(50_000)),
        lambda group: group.allreduce(np.ones(50_000, np.float32)),
    ),
    "shapes, by messages": (
        lambda group: group.allreduce(np.ones(3), algorithm="recursive doubling"),
        lambda group: group.allreduce(np.ones((3, 1)), algorithm="recursive doubling"),
    ),
    "an array and a number": (
        lambda group: group.allreduce(np.ones(1)),
        lambda group: group.allreduce(1.0),
    ),
}


@pytest.mark.parametrize("odd", range(N))
@pytest.mark.parametrize("name", MISMATCHES)
def test_calls_that_do_not_fit(crowd: Crowd, name: str, odd: int) -> None:
    usual, other = MISMATCHES[name]

    def program(group: Group) -> Any:
        try:
            (other if group.rank == odd else usual)(group)
        except CollectiveError:
            raise
        # A member may have its whole result: then it learns of the failure at its next call.
        return group.barrier()

    outcomes = crowd.run(program)
    assert all(isinstance(error, CollectiveError) for error in outcomes), outcomes
    mismatches = [error for error in outcomes if isinstance(error, CollectiveMismatch)]
    assert mismatches, outcomes
    for error in mismatches:
        assert len(error.calls) >= 2 and len(set(error.calls.values())) == 2, error.calls
        line = f" in {os.path.basename(__file__)}, line "
        assert all(line in call for call in error.calls.values()), error.calls
        assert repr(odd) in str(error) and "the same calls in the same order" in str(error)
    goes_on(crowd)


@pytest.mark.parametrize(
    "algorithm", [None, "linear", "binomial", "recursive doubling", "two-level"]
)
def test_an_operation_that_raises(crowd: Crowd, algorithm: str | None) -> None:
    def program(group: Group) -> Any:
        return group.allreduce(group.rank, lambda a, b: a // 0, algorithm=algorithm)

    outcomes = crowd.run(program)
    for error in outcomes:
        assert type(error) in (ZeroDivisionError, CollectiveError), outcomes
        assert type(error) is ZeroDivisionError or "ZeroDivisionError" in str(error)
    goes_on(crowd)


def test_an_operation_that_raises_on_arrays_too_large_for_a_tree(crowd: Crowd) -> None:
    def program(group: Group) -> Any:
        return group.allreduce(np.arange(50_000), np.true_divide)  # has no place for its result

    assert all(isinstance(error, TypeError | CollectiveError) for error in crowd.run(program))
    goes_on(crowd)


def test_a_value_that_cannot_be_pickled(crowd: Crowd) -> None:
    def program(group: Group) -> Any:
        return group.allgather(threading.Lock() if group.rank == 1 else 1)

    first, second, third = crowd.run(program)
    assert isinstance(second, Exception)
    assert isinstance(first, CollectiveError) and isinstance(third, CollectiveError)
    assert "1 could not go on in allgather(" in str(first)
    goes_on(crowd)


def test_a_member_that_leaves_is_lost_for_all_others(
    kind: str, world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfm_kernel.collectives.team.DEATH_TICKS", 1)
    for algorithm in ALGORITHMS["barrier"]:
        if algorithm == "flags" and kind == "zmq":
            continue
        with crowd_of(world, 4) as crowd:
            groups = crowd.run(lambda group: group)
            del groups[2]
            calls = [Background(partial(group.barrier, algorithm=algorithm)) for group in groups]
            crowd.endpoints[2].close()
            outcomes = [outcome(call) for call in calls]
            assert all(isinstance(error, PeerLost) and error.peer == 2 for error in outcomes)


def test_a_member_that_has_done_its_part_may_leave(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if another process gets its name, while the others wait for each other."""
    monkeypatch.setattr("sfm_kernel.collectives.team.DEATH_TICKS", 1)
    groups = crowd.run(lambda group: group)
    scan = partial(Group.scan, algorithm="linear")
    assert Background(partial(scan, groups[0], 1)).result() == 1
    crowd.endpoints[0].close()
    with sfm_kernel.join(crowd.world) as heir:
        assert heir.name == groups[0].members[0]
        looks: list[int] = []
        groups[2]._team.on_wait = lambda: looks.append(1)
        last = Background(partial(scan, groups[2], 1))
        wait_until(lambda: len(looks) > 2 or not last.is_alive())
        assert results([Background(partial(scan, groups[1], 1)), last]) == [2, 3]


def test_a_group_of_which_somebody_is_gone(crowd: Crowd) -> None:
    groups = crowd.run(lambda group: group)
    crowd.endpoints[1].close()
    for rank in (0, 2):
        with pytest.raises((PeerLost, CollectiveError)):
            groups[rank].allgather(1)


def test_closing_the_endpoint_ends_the_call(crowd: Crowd) -> None:
    groups = crowd.run(lambda group: group)
    waiting = Background(groups[0].barrier)
    wait_until(lambda: groups[0]._team.ledger.busy)
    crowd.endpoints[0].close()
    with pytest.raises(EndpointClosed):
        waiting.result()


@pytest.mark.parametrize("algorithm", ["flags", "linear", "recursive doubling"])
def test_stop_ends_it_on_all(crowd: Crowd, kind: str, algorithm: str) -> None:
    if algorithm == "flags" and kind == "zmq":
        algorithm = "binomial"  # there is no shared memory
    groups = crowd.run(lambda group: group)
    other = Background(partial(groups[1].allreduce, 1, algorithm=algorithm))
    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        groups[0].allreduce(1, algorithm=algorithm)
    timer.join()
    with pytest.raises(CollectiveError, match=r"0 could not go on in allreduce.*Interrupt"):
        other.result()
    # The one that had not come hears of it when it comes. (What it was sent before may have arrived
    # earlier: with that alone it could complete its part.)
    # Notes about calls that wait come before.
    wait_until(lambda: groups[2]._team._notes.peek(failed=lambda _: True))
    with pytest.raises(CollectiveError, match="KeyboardInterrupt"):
        groups[2].allreduce(1, algorithm=algorithm)
    goes_on(crowd)


def test_a_new_group_begins_anew_after_a_stop(crowd: Crowd) -> None:
    groups = crowd.run(lambda group: group)
    timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        groups[0].barrier()
    timer.join()
    wait_until(lambda: all(group._team._notes.peek() for group in groups[1:]))
    goes_on(crowd)  # which makes new groups


def test_making_a_group_waits_for_all_and_can_be_stopped(crowd: Crowd) -> None:
    for rank in (0, 1):
        timer = threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            Group(crowd.endpoints[rank])
        timer.join()
    goes_on(crowd)


def test_a_group_of_somebody_who_leaves_meanwhile(crowd: Crowd) -> None:
    waiting = [Background(partial(Group, sfm)) for sfm in crowd.endpoints[:2]]

    def is_meeting(sfm: Endpoint) -> bool:  # it knows by then who is to come
        return any(table.busy.locked() for table in meeting._tables.get(sfm, {}).values())

    wait_until(lambda: all(map(is_meeting, crowd.endpoints[:2])))
    crowd.endpoints[2].close()
    for call in waiting:
        with pytest.raises(PeerLost, match="2"):
            call.result()


def test_two_threads_of_a_member(crowd: Crowd) -> None:
    groups = crowd.run(lambda group: group)
    waiting = Background(groups[0].barrier)
    wait_until(lambda: groups[0]._team.ledger.busy)
    with pytest.raises(CollectiveError, match="one at a time"):
        groups[0].barrier()
    results([waiting, *(Background(group.barrier) for group in groups[1:])])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda group: group.bcast(1, root=3), ValueError, "root is a rank in the group, 0 to 2"),
        (lambda group: group.bcast(1, root=-1), ValueError, "not -1"),
        (lambda group: group.gather(1, root="A"), ValueError, "not 'A'"),
        (lambda group: group.reduce(1, root=1.5), ValueError, "root is a rank"),
        (lambda group: group.allreduce(1, "add"), TypeError, "op is a function of two values"),
        (lambda group: group.barrier(algorithm="tree"), ValueError, "it has flags, linear"),
        (lambda group: group.allreduce(1, algorithm="ring"), ValueError, "numpy.add"),
        (
            lambda group: group.allreduce(np.ones(2), lambda a, b: a, algorithm="rabenseifner"),
            ValueError,
            "a ufunc",
        ),
        (lambda group: group.allreduce(np.ones(2), out=np.ones(3)), ValueError, "out must be"),
        (lambda group: group.allreduce(1.0, out=np.ones(1)), ValueError, "out must be"),
    ],
)
def test_bad_input_is_refused_before_anything_happens(
    crowd: Crowd, call: Call, error: type[Exception], text: str
) -> None:
    outcomes = crowd.run(call)
    assert all(isinstance(raised, error) and text in str(raised) for raised in outcomes), outcomes
    goes_on(crowd)


REFUSED: list[tuple[Call, Call]] = [
    (
        lambda group: group.allreduce(np.ones(3), out=np.ones(3)),
        lambda group: group.allreduce(np.ones(3), out=np.ones(4)),
    ),
    (
        lambda group: group.reduce(np.ones(3), root=1),
        lambda group: group.reduce(np.ones(3), root=1, out=np.ones(4)),
    ),
    (lambda group: group.bcast(1), lambda group: group.bcast(1, root=7)),
    (lambda group: group.allreduce(1), lambda group: group.allreduce(1, "add")),
    (lambda group: group.barrier(), lambda group: group.barrier(algorithm="magic")),
]


@pytest.mark.parametrize("nth", range(len(REFUSED)))
def test_the_others_learn_of_a_call_that_one_member_refuses(crowd: Crowd, nth: int) -> None:
    right, wrong = REFUSED[nth]
    groups = crowd.run(lambda group: group)

    def program(group: Group) -> Any:
        (wrong if group.rank == 1 else right)(group)
        return group.barrier()  # a member that did not need the one that refused hears of it now

    calls = [Background(partial(program, group)) for group in groups]
    first, second, third = (outcome(call) for call in calls)
    assert isinstance(second, ValueError | TypeError) and second.__traceback__
    assert type(first) is type(third) is CollectiveError, (first, third)
    goes_on(crowd, groups)


def test_two_failures_before_anybody_looks(crowd: Crowd) -> None:
    groups = crowd.run(lambda group: group)
    for _ in range(2):
        with pytest.raises(ValueError, match="root"):
            groups[0].bcast(1, root=9)
    for group in groups[1:]:
        for _ in range(2):
            with pytest.raises(CollectiveError, match="root"):
                group.allgather(1, algorithm="ring")
    goes_on(crowd, groups)


def test_waiting_for_a_slow_member_leaves_nothing_in_its_inbox(crowd: Crowd) -> None:
    groups = crowd.run(lambda group: group)

    def program(group: Group) -> None:
        for _ in range(3):
            if group.rank == 2:
                time.sleep(0.3)
            group.barrier()

    results([Background(partial(program, group)) for group in groups])
    sfm = crowd.endpoints[2]
    sfm.peek(tag="never sent")  # takes in what has come
    if groups[2].is_local:
        assert sfm._inbox.depth == 0
    crowd.endpoints[0].buffering = 0
    sending = Background(lambda: crowd.endpoints[0].send(dest=2, text="hello"))
    assert sfm.recv(20, src=0).text == "hello"
    sending.result()


@pytest.mark.parametrize("values", [[1, 2], None, [1, 2, 3, 4]])
def test_as_many_values_as_members(crowd: Crowd, values: Any) -> None:
    def scatter(group: Group) -> Any:
        return group.scatter(values if group.rank == 0 else None)

    def alltoall(group: Group) -> Any:
        return group.alltoall(values if group.rank == 1 else [1, 2, 3])

    for program, wrong in ((scatter, 0), (alltoall, 1)):
        for rank, error in enumerate(crowd.run(program)):
            assert isinstance(error, ValueError if rank == wrong else CollectiveError)
            assert rank != wrong or "needs 3 values, one for each member" in str(error)
            assert "one for each member" in str(error)
        goes_on(crowd)


def test_groups_that_cannot_be(crowd: Crowd) -> None:
    sfm = crowd.endpoints[0]
    with pytest.raises(ValueError, match="lists 1 twice"):
        Group(sfm, [0, 1, 1])
    with pytest.raises(UnknownName, match="'nobody'"):
        Group(sfm, [0, "nobody"])
    with pytest.raises(ValueError, match="0 is no member of"):
        Group(sfm, [1, 2])
    with pytest.raises(ValueError, match="no member"):
        Group(sfm, [])
