"""A farm's tasks: schedules, order, failures, workers that die, code and data that are injected."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

import sfm_kernel
from sfm_kernel import farm, serving
from sfm_kernel.errors import (
    EncodeError,
    SFMError,
    TaskFailed,
    TaskPoisoned,
    UnknownName,
    WorkersLost,
)

pytestmark = [
    pytest.mark.usefixtures("forked"),
    pytest.mark.keeps("three workers for the whole module"),
]


@pytest.fixture(scope="module")
def three() -> Iterator[serving.OwnProcesses]:
    """Processes that serve one farm after the other."""
    own = serving.OwnProcesses(3)
    yield own
    own.close()


@pytest.fixture
def workers(three: serving.OwnProcesses) -> Iterator[farm.Farm]:
    """A farm of theirs."""
    with farm.connect(three.sfm) as found:
        yield found


@pytest.fixture
def mortals() -> Iterator[farm.Farm]:
    """A farm of three that may die."""
    own = serving.OwnProcesses(3)
    try:
        with farm.connect(own.sfm) as found:
            yield found
    finally:
        own.close()


def square(x: int) -> int:
    return x * x


def nap(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def die_at(x: int, deadly: int) -> int:
    if x == deadly:
        os._exit(3)
    return x


def fail_at(x: int, bad: int) -> int:
    if x == bad:
        raise ValueError(f"no {x}")
    return x


# ---- results ----


@pytest.mark.parametrize("schedule", farm.SCHEDULES)
@pytest.mark.parametrize("chunk", [0, 3])
def test_results_are_in_order(workers: farm.Farm, schedule: str, chunk: int) -> None:
    items = range(50)
    assert list(workers.map(square, items, schedule=schedule, chunk=chunk)) == [
        square(x) for x in items
    ]
    assert sum(one["calls"] for one in workers.report().values()) == 50


def test_unordered_results_are_all_there(workers: farm.Farm) -> None:
    assert sorted(workers.map(square, range(100), unordered=True)) == [x * x for x in range(100)]


def test_unordered_results_come_as_they_come(workers: farm.Farm) -> None:
    first = next(workers.map(lambda s: time.sleep(s) or s, [1.0, 0.0], chunk=1, unordered=True))
    assert first == 0.0


def test_results_are_used_while_others_are_awaited(workers: farm.Farm) -> None:
    results = workers.map(square, range(1000))
    assert next(results) == 0 and next(results) == 1
    assert len(list(results)) == 998
    assert list(results) == []


def test_several_iterables_and_none(workers: farm.Farm) -> None:
    assert list(workers.map(pow, [2, 3], [3, 2])) == [8, 9]
    assert list(workers.map(square, [])) == []
    assert workers.map(square, []).finish() == {}


def test_many_maps_at_the_same_time(workers: farm.Farm) -> None:
    pairs = zip(workers.map(square, range(30)), workers.map(str, range(30)), strict=True)
    assert list(pairs) == [(x * x, str(x)) for x in range(30)]


def test_arrays_and_classes_of_the_program(workers: farm.Farm) -> None:
    import numpy as np

    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

    arrays = workers.map(lambda a: a + 1, [np.zeros(10000), np.ones(10000)])
    assert [one.sum() for one in arrays] == [10000, 20000]
    (point,) = workers.map(lambda p: Point(p.x + 1), [Point(1)])
    assert isinstance(point, Point) and point.x == 2


def test_what_a_function_reads_is_as_it_is_now(workers: farm.Farm) -> None:
    factor = 2

    def times(x: int) -> int:
        return x * factor

    assert list(workers.map(times, [1, 2])) == [2, 4]
    factor = 3
    assert list(workers.map(times, [1, 2])) == [3, 6]


def test_static_parts_are_equal(workers: farm.Farm) -> None:
    list(workers.map(square, range(99), schedule="static"))
    assert [one["calls"] for one in workers.report().values()] == [33, 33, 33]


def test_who_has_done_its_part_robs_another(workers: farm.Farm) -> None:
    uneven = [0.03] * 30 + [0.0] * 60
    pids = list(workers.map(nap, uneven, schedule="stealing"))
    assert len(set(pids[:30])) > 1, "the long ones were all in one part"
    assert sum(one["stolen"] for one in workers.report().values()) > 0


def test_bad_arguments(workers: farm.Farm) -> None:
    for wrong in ({"schedule": "fair"}, {"chunk": -1}):
        with pytest.raises(ValueError, match="schedule is one of dynamic, guided"):
            workers.map(square, [1], **wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="no process is named 7"):
        workers.fork(7, square, 1)


# ---- Trickle's words ----


def test_fork_and_join(workers: farm.Farm) -> None:
    one = workers.fork(1, os.getpid)
    others = [workers.fork(name, os.getpid) for name in workers.workers]
    pids = workers.join(others)
    assert len(set(pids)) == 3 and workers.join(one) == pids[1] == workers.join(one)
    assert workers.join(workers.fork(None, square, 3)) == 9
    assert workers.everywhere(square, 2) == [4, 4, 4]


def test_injected_names_are_found(workers: farm.Farm) -> None:
    workers.inject(None, "def twice(x): return 2 * x * scale", {"scale": 10})
    workers.inject(1, [square, time], {"only": "here"})
    assert workers.everywhere("twice", 3) == [60, 60, 60]
    assert list(workers.map("twice", range(3))) == [0, 20, 40]
    assert workers.everywhere(lambda: twice(1) + scale) == [30] * 3  # type: ignore[name-defined] # noqa: F821
    assert workers.join(workers.fork(1, lambda: (square(3), only))) == (9, "here")  # type: ignore[name-defined] # noqa: F821
    with pytest.raises(TaskFailed, match="nothing was injected here as 'square'"):
        workers.join(workers.fork(0, "square", 2))


def test_injected_data_can_change(workers: farm.Farm) -> None:
    def scaled(x: int) -> int:
        return x * scale  # type: ignore[name-defined,no-any-return] # noqa: F821

    for scale_now in (2, 3):
        workers.inject(None, scaled, {"scale": scale_now})
        assert workers.everywhere("scaled", 5) == [5 * scale_now] * 3


def test_a_task_uses_its_workers_endpoint(workers: farm.Farm) -> None:
    sfm = workers.sfm
    assert workers.everywhere(lambda: (sfm.rank, rank)) == [(n, n) for n in range(3)]  # type: ignore[name-defined] # noqa: F821

    def ring() -> object:
        sfm.send(dest=(sfm.rank + 1) % 3, hello=sfm.rank)
        return sfm.recv().hello

    assert workers.everywhere(ring) == [2, 0, 1]


# ---- failures ----


@pytest.mark.parametrize("unordered", [False, True])
def test_a_task_that_raises(workers: farm.Farm, unordered: bool) -> None:
    results = workers.map(fail_at, range(10), [4] * 10, unordered=unordered, chunk=1)
    found = []
    with pytest.raises(
        TaskFailed, match=r"fail_at\(4, 4\) failed on worker \d: ValueError: no 4"
    ) as told:
        found += results
    error = told.value
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
    with pytest.raises(EncodeError, match="it uses what cannot be pickled"):
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

    with pytest.raises(TaskFailed, match="ValueError: odd") as told:
        workers.join(workers.fork(0, odd))
    assert told.value.__cause__ is None


def test_the_end_of_a_process_is_no_way_out_of_a_task(workers: farm.Farm) -> None:
    with pytest.raises(TaskFailed, match="SystemExit: 5"):
        workers.join(workers.fork(0, exit, 5))
    assert workers.everywhere(square, 2) == [4, 4, 4]


def test_a_changed_global_is_warned_of(workers: farm.Farm) -> None:
    def count() -> None:
        global counted
        counted = 1

    with pytest.warns(UserWarning, match="count changes the global counted: each process") as told:
        workers.everywhere(count)
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        workers.everywhere(square, 2)


def test_cancelled_tasks_are_not_run(workers: farm.Farm) -> None:
    results = workers.map(nap, [0.2] * 30, chunk=1)
    next(results)
    results.cancel()
    assert list(results) == []
    assert list(workers.map(square, range(9), schedule="static")) == [x * x for x in range(9)]
    assert sum(one["calls"] for one in workers.report().values()) < 30


def test_who_is_not_told_which_world(workers: farm.Farm) -> None:
    with sfm_kernel.join(f"another-{os.getpid()}", rank=0) as other:
        with pytest.raises(SFMError, match="this process has 2 endpoints"):
            farm.connect()
        with pytest.raises(WorkersLost, match="no worker lives"):
            farm.connect(other)


# ---- death ----


@pytest.mark.fault
@pytest.mark.parametrize("schedule", farm.SCHEDULES)
def test_a_poisoned_task(mortals: farm.Farm, schedule: str) -> None:
    results = mortals.map(die_at, range(40), [17] * 40, schedule=schedule)
    with pytest.raises(TaskPoisoned, match=r"die_at\(17, 17\) failed: workers \d, \d died") as told:
        list(results)
    assert results.finish() == {x: x for x in range(40) if x != 17}
    assert len(set(told.value.workers)) == 2
    assert set(told.value.workers).isdisjoint(mortals.workers) and len(mortals.workers) == 1


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
    with pytest.raises(TaskFailed, match="it died, and the call was for nobody else"):
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


# ---- programs ----


def program(sfm: sfm_kernel.Endpoint) -> object:
    if sfm.rank:
        return farm.serve(sfm)
    with farm.connect(sfm) as first, farm.connect(sfm, [2]) as second:
        one, other = first.map(square, range(10)), second.map(str, range(10))
        assert second.workers == [2]
        return list(one), list(other)


def test_two_farms_of_one_program() -> None:
    expected = [x * x for x in range(10)], [str(x) for x in range(10)]
    assert sfm_kernel.run(program, 3, timeout=60) == [expected, None, None]


def by_name(sfm: sfm_kernel.Endpoint) -> object:
    if sfm.name != "B":
        return farm.serve(sfm)
    with farm.connect(sfm) as workers:
        return (
            workers.workers,
            workers.join(workers.fork(2, square, 3)),
            len(workers.everywhere(dir)),
        )


def test_names_and_ranks() -> None:
    found = sfm_kernel.run(by_name, 3, names=["A", "B", "C"], timeout=60)
    assert found[1] == (["A", "C"], 9, 2)


def forgetful(sfm: sfm_kernel.Endpoint) -> object:
    if sfm.rank == 0:
        with farm.connect(sfm, [1]) as workers:
            return list(workers.map(square, [3]))
    return sfm.recv(tag="nothing")


def test_a_rank_that_forgets_to_serve_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(sfm_kernel.ProcessFailed, match="0 is in farm and waits for 1"):
        sfm_kernel.run(forgetful, 2, timeout=60, detect=True)


def widow(sfm: sfm_kernel.Endpoint) -> object:
    """Its owner leaves without a word."""
    if sfm.rank:
        farm.serve(sfm)
        return "served"
    farm.connect(sfm).everywhere(square, 2)
    sfm.close()
    return "gone"


def test_workers_end_with_their_owner() -> None:
    assert sfm_kernel.run(widow, 3, timeout=60) == ["gone", "served", "served"]


def sulking(sfm: sfm_kernel.Endpoint) -> object:
    """A service that fails ends its program, as everything does that a program calls."""
    if sfm.rank:
        return serving.serve(sfm)
    with serving.Attachment(sfm, [1], Sulking, "sulking") as link:
        link.send(1, word="hello")
        return link.receive(lambda: [1])


class Sulking(serving.Service):
    def take(self, message: sfm_kernel.Message) -> None:
        raise RuntimeError(message.word)


def test_a_service_that_fails_ends_its_program() -> None:
    with pytest.raises(sfm_kernel.ProcessFailed, match="rank 1 raised RuntimeError: hello"):
        sfm_kernel.run(sulking, 2, timeout=60)
