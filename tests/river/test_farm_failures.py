"""A farm's tasks that fail, cannot be sent or kill their worker; and the tasks of dead workers."""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import suppress

import pytest

import sfm_kernel
from sfm_kernel import farm
from sfm_kernel.errors import (
    EncodeError,
    PeerLost,
    TaskFailed,
    TaskPoisoned,
    UnknownName,
    WorkersLost,
)
from sfm_kernel.serving import owner
from tests.river.tasks import die_at, fail_at, nap, square
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.usefixtures("forked"),
    pytest.mark.keeps("three workers for the whole module"),
]


# ---- failures ----


@pytest.mark.parametrize("unordered", [False, True])
def test_a_task_that_raises(workers: farm.Farm, unordered: bool) -> None:
    results = workers.map(fail_at, range(10), [4] * 10, unordered=unordered, chunk=1)
    found = []
    with pytest.raises(
        TaskFailed, match=r"fail_at\(4, 4\) failed on worker \d: ValueError: no 4"
    ) as caught:
        found += results
    error = caught.value
    assert isinstance(error.__cause__, ValueError) and error.worker in workers.workers
    assert 'raise ValueError(f"no {x}")' in error.traceback
    assert error.tasks is results
    assert results.finish() == {x: x for x in range(10) if x != 4}
    assert list(results.failures) == [4]


def test_iteration_goes_on_behind_a_failure(workers: farm.Farm) -> None:
    results = workers.map(fail_at, range(4), [1] * 4)
    assert next(results) == 0
    with pytest.raises(TaskFailed):
        next(results)
    assert list(results) == [2, 3]


def test_an_argument_that_cannot_be_sent(workers: farm.Farm) -> None:
    lock = threading.Lock()
    results = workers.map(str, [1, lock, 3])
    assert results.finish() == {0: "1", 2: "3"}
    assert results.failures[1].worker is None
    assert "argument 1, a lock, cannot be sent: TypeError: cannot pickle" in str(
        results.failures[1]
    )
    with pytest.raises(TypeError, match=r"pow: argument 2, a lock, cannot be sent"):
        workers.fork(0, pow, 1, lock)


def test_a_function_that_cannot_be_sent(workers: farm.Farm) -> None:
    lock = threading.Lock()
    with pytest.raises(EncodeError, match="it uses a value that cannot be pickled"):
        workers.map(lambda _: lock, [1])
    assert list(workers.map(square, [2])) == [4]


def test_a_result_that_cannot_be_sent(workers: farm.Farm) -> None:
    results = workers.map(lambda x: threading.Lock() if x == 1 else x, range(3), schedule="static")
    assert results.finish() == {0: 0, 2: 2}
    assert "the result, a lock, cannot be sent" in str(results.failures[1])
    assert "Return data instead" in str(results.failures[1])


def test_arguments_that_the_worker_cannot_read(workers: farm.Farm) -> None:
    class Odd:
        def __reduce__(self) -> tuple[object, ...]:
            return int, ("no number",)

    results = workers.map(str, [Odd()])
    with pytest.raises(TaskFailed, match="invalid literal for int"):
        next(results)
    assert list(workers.map(square, [2])) == [4]


def test_an_error_that_cannot_be_sent_is_told(workers: farm.Farm) -> None:
    def odd() -> None:
        error = ValueError("odd")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(TaskFailed, match="ValueError: odd") as caught:
        workers.join(workers.fork(0, odd))
    assert caught.value.__cause__ is None


def test_the_end_of_a_process_is_no_way_out_of_a_task(workers: farm.Farm) -> None:
    with pytest.raises(TaskFailed, match="SystemExit: 5"):
        workers.join(workers.fork(0, exit, 5))
    assert workers.everywhere(square, 2) == [4, 4, 4]


def test_a_changed_global_is_warned_of(workers: farm.Farm) -> None:
    def count() -> None:
        global counted
        counted = 1

    with pytest.warns(
        UserWarning, match="count changes the global counted: each process"
    ) as caught:
        workers.everywhere(count)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workers.everywhere(square, 2)


def test_cancelled_tasks_are_not_run(workers: farm.Farm) -> None:
    results = workers.map(nap, [0.2] * 30, chunk=1)
    next(results)
    results.cancel()
    assert list(results) == []
    assert list(workers.map(square, range(9), schedule="static")) == [x * x for x in range(9)]
    assert sum(worker["calls"] for worker in workers.report().values()) < 30


def test_thefts_are_heard_of_in_any_order(workers: farm.Farm) -> None:
    """A worker that steals a call back is known to have it before the theft is heard of."""
    results = workers.map(nap, [0.02] * 12, schedule="stealing")
    caller = results._caller
    caller._move(caller._states[0], [(results.number, [11])], 1)  # by now it is 2's again
    assert len(results.finish()) == 12
    assert not any(state.holds() for state in caller._states.values())


# ---- death ----


@pytest.mark.fault
@pytest.mark.parametrize("schedule", farm.SCHEDULES)
def test_a_poisoned_task(mortals: farm.Farm, schedule: str) -> None:
    results = mortals.map(die_at, range(40), [17] * 40, schedule=schedule)
    with pytest.raises(
        TaskPoisoned, match=r"die_at\(17, 17\) failed: workers \d, \d ended"
    ) as caught:
        list(results)
    assert results.finish() == {x: x for x in range(40) if x != 17}
    assert len(set(caught.value.workers)) == 2
    assert set(caught.value.workers).isdisjoint(mortals.workers) and len(mortals.workers) == 1


@pytest.mark.fault
def test_a_worker_that_dies_gives_its_tasks_back(mortals: farm.Farm) -> None:
    pids = mortals.everywhere(os.getpid)
    results = mortals.map(nap, [0.02] * 60, schedule="static")
    os.kill(pids[1], 9)
    found = list(results)
    assert len(found) == 60 and not results.failures and 1 not in mortals.workers
    assert set(found[30:]) <= set(pids)


@pytest.mark.fault
def test_a_thief_that_dies(mortals: farm.Farm) -> None:
    pids = mortals.everywhere(os.getpid)
    # Worker 2 has nothing to do but to steal.
    results = mortals.map(nap, [0.02] * 40 + [0.0] * 20, schedule="stealing")
    while mortals.report()[2]["stolen"] == 0:
        next(results)
    os.kill(pids[2], 9)
    assert len(results.finish()) == 60 and not results.failures


@pytest.mark.fault
def test_a_fork_dies_with_its_worker(mortals: farm.Farm) -> None:
    forked = mortals.fork(1, os._exit, 0)
    with pytest.raises(TaskFailed, match="it has ended, and the call was for this worker only"):
        mortals.join(forked)
    assert mortals.workers == [0, 2]
    with pytest.raises(TaskPoisoned):
        mortals.join(mortals.fork(None, os._exit, 0))


@pytest.mark.fault
def test_all_workers_die(mortals: farm.Farm) -> None:
    pids = mortals.everywhere(os.getpid)
    results = mortals.map(nap, [0.01] * 600, chunk=1)
    next(results)
    for pid in pids:
        os.kill(pid, 9)
    with pytest.raises(WorkersLost, match="no worker lives"):
        list(results)
    assert results.results, "what was done is kept"


@pytest.mark.fault
@pytest.mark.parametrize("connects", ["connect", "Executor"])
def test_a_worker_dies_while_the_workers_are_attached(
    mortals: farm.Farm, connects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = mortals.everywhere(os.getpid)[0]
    (member,) = (member for member in mortals.sfm.members() if member.pid == victim)
    pack = owner.cloudpickle.dumps

    def dies(service: object) -> bytes:  # the workers are listed, and none is attached
        with suppress(ProcessLookupError):  # the second time
            os.kill(victim, 9)
        wait_until(lambda: not mortals.sfm.alive(member))
        return pack(service)

    monkeypatch.setattr(owner.cloudpickle, "dumps", dies)
    if connects == "connect":
        with farm.connect(mortals.sfm) as others:
            assert others.workers == [1, 2]
            assert list(others.map(square, range(9))) == [x * x for x in range(9)]
        with pytest.raises(PeerLost):
            farm.connect(mortals.sfm, [0, 1, 2])
    else:
        assert mortals.workers == [0, 1, 2], "it has not noticed"
        with farm.Executor(mortals) as executor:
            assert list(executor.map(square, range(9))) == [x * x for x in range(9)]


def test_who_would_have_been_attached_does_not_serve_for_ever() -> None:
    def program(sfm: sfm_kernel.Endpoint) -> str:
        if sfm.rank == 2:
            return "released" if farm.serve(sfm) is None else ""
        if sfm.rank == 1:
            sfm.recv(src=0)
            sfm.close()
        else:
            (first,) = (member for member in sfm.members() if member.rank == 1)
            sfm.send(dest=1, go=True)
            wait_until(lambda: not sfm.alive(first))
            with pytest.raises(UnknownName):
                farm.connect(sfm, [1, 2])
        return "left"

    assert sfm_kernel.run(program, n=3) == ["left", "left", "released"]


@pytest.mark.parametrize("end", ["interrupted", pytest.param("killed", marks=pytest.mark.fault)])
@pytest.mark.parametrize("reached", [1, 3], ids=["some hear of it", "some are attached"])
def test_an_owner_ends_before_it_has_attached_all(
    end: str, reached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(sfm: sfm_kernel.Endpoint) -> None:
        send, sent = owner.Attachment.send, iter(range(reached))

        def send_some(self: owner.Attachment, dest: object, /, **attributes: object) -> None:
            if next(sent, None) is None and "release" not in attributes:
                if end == "killed":
                    os.kill(os.getpid(), 9)
                raise KeyboardInterrupt
            send(self, dest, **attributes)

        monkeypatch.setattr(owner.Attachment, "send", send_some)
        with pytest.raises(KeyboardInterrupt):
            farm.connect(sfm, [1, 2])
        monkeypatch.undo()

    def program(sfm: sfm_kernel.Endpoint) -> str:
        if sfm.rank:
            return "ended" if farm.serve(sfm) is None else ""
        if end == "interrupted":
            connect(sfm)
        elif not (child := os.fork()):
            with sfm_kernel.join(sfm.world, name="owner") as other:
                connect(other)
        else:
            os.waitpid(child, 0)
        return "left"

    assert sfm_kernel.run(program, n=3, timeout=60) == ["left", "ended", "ended"]
