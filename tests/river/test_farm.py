"""A farm's tasks: schedules, order, code and data that are injected; and programs that serve."""

from __future__ import annotations

import os
import re
import time

import pytest

import sfm_kernel
from sfm_kernel import farm, serving
from sfm_kernel.errors import SFMError, TaskFailed, UnknownName, WorkersLost
from tests.river.tasks import nap, square

pytestmark = [
    pytest.mark.usefixtures("forked"),
    pytest.mark.keeps("three workers for the whole module"),
]


# ---- results ----


@pytest.mark.parametrize("schedule", farm.SCHEDULES)
@pytest.mark.parametrize("chunk", [0, 3])
def test_results_are_in_order(workers: farm.Farm, schedule: str, chunk: int) -> None:
    items = range(50)
    assert list(workers.map(square, items, schedule=schedule, chunk=chunk)) == [
        square(x) for x in items
    ]
    assert sum(worker["calls"] for worker in workers.report().values()) == 50


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
    assert [array.sum() for array in arrays] == [10000, 20000]
    (point,) = workers.map(lambda p: Point(p.x + 1), [Point(1)])
    assert isinstance(point, Point) and point.x == 2


def test_a_function_reads_the_current_value_of_a_variable(workers: farm.Farm) -> None:
    factor = 2

    def times(x: int) -> int:
        return x * factor

    assert list(workers.map(times, [1, 2])) == [2, 4]
    factor = 3
    assert list(workers.map(times, [1, 2])) == [3, 6]


def test_static_parts_are_equal(workers: farm.Farm) -> None:
    list(workers.map(square, range(99), schedule="static"))
    assert [worker["calls"] for worker in workers.report().values()] == [33, 33, 33]


def test_a_worker_that_has_done_its_part_steals_from_another(workers: farm.Farm) -> None:
    uneven = [0.03] * 30 + [0.0] * 60
    pids = list(workers.map(nap, uneven, schedule="stealing"))
    assert len(set(pids[:30])) > 1, "the long ones were all in one part"
    assert sum(worker["stolen"] for worker in workers.report().values()) > 0


def test_bad_arguments(workers: farm.Farm) -> None:
    for wrong in ({"schedule": "fair"}, {"chunk": -1}):
        with pytest.raises(ValueError, match="schedule is one of dynamic, guided"):
            workers.map(square, [1], **wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="no process is named 7"):
        workers.fork(7, square, 1)


# ---- Trickle's words ----


def test_fork_and_join(workers: farm.Farm) -> None:
    forked = workers.fork(1, os.getpid)
    others = [workers.fork(name, os.getpid) for name in workers.workers]
    pids = workers.join(others)
    assert len(set(pids)) == 3 and workers.join(forked) == pids[1] == workers.join(forked)
    assert workers.join(workers.fork(None, square, 3)) == 9
    assert workers.everywhere(square, 2) == [4, 4, 4]


def test_injected_names_are_found(workers: farm.Farm) -> None:
    workers.inject(None, "def twice(x): return 2 * x * scale", {"scale": 10})
    workers.inject(1, [square, time], {"only": "here"})
    assert workers.everywhere("twice", 3) == [60, 60, 60]
    assert list(workers.map("twice", range(3))) == [0, 20, 40]
    assert workers.everywhere(lambda: twice(1) + scale) == [30] * 3  # type: ignore[name-defined] # noqa: F821
    assert workers.join(workers.fork(1, lambda: (square(3), only))) == (9, "here")  # type: ignore[name-defined] # noqa: F821
    with pytest.raises(TaskFailed, match="no name 'square' was injected here"):
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


def test_connect_raises_if_the_world_is_ambiguous_or_has_no_workers(workers: farm.Farm) -> None:
    with sfm_kernel.join(f"another-{os.getpid()}", rank=0) as other:
        with pytest.raises(SFMError, match="this process has 2 endpoints"):
            farm.connect()
        with pytest.raises(WorkersLost, match="no worker lives"):
            farm.connect(other)


# ---- programs ----


def program(sfm: sfm_kernel.Endpoint) -> object:
    if sfm.rank:
        return farm.serve(sfm)
    with farm.connect(sfm) as first, farm.connect(sfm, [2]) as second:
        squares, texts = first.map(square, range(10)), second.map(str, range(10))
        assert second.workers == [2]
        return list(squares), list(texts)


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
    said = re.escape("0 is in farm (1 call has not begun) and waits for 1")
    with pytest.raises(sfm_kernel.ProcessFailed, match=said):
        sfm_kernel.run(forgetful, 2, timeout=60, detect=True)


def widow(sfm: sfm_kernel.Endpoint) -> object:
    """The farm's owner leaves without a word."""
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
