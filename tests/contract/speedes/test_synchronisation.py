"""Counting nodes, barriers, global operations, fuzzy barriers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfm_kernel import SFMError
from sfm_kernel.speedes import SimTime, SpeedesComm
from tests.contract.conftest import Background, results
from tests.contract.speedes.conftest import MakeGroup, at_all
from tests.waiting import wait_until

NAN = float("nan")


def test_nodes_are_counted_from_0(group: MakeGroup, kind: str) -> None:
    nodes = group(3)
    assert [comm.get_node_id() for comm in nodes] == [0, 1, 2]
    assert {comm.get_num_nodes() for comm in nodes} == {3}
    machines = [[0], [1], [2]] if kind == "zmq" else [[0, 1, 2]]  # where memory is shared
    assert all(comm.machines == machines for comm in nodes)
    assert repr(nodes[1]) == "<SpeedesComm node 1 of 3, group 0>"


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_global_operations(group: MakeGroup, n: int) -> None:
    nodes = group(n)

    def work(comm: SpeedesComm) -> list[Any]:
        me = comm.get_node_id()
        return [
            comm.global_min(10 - me), comm.global_max(10 - me), comm.global_sum(10**20 + me),
            comm.global_min(me + 0.5), comm.global_max(me + 0.5), comm.global_sum(me + 0.5),
            comm.global_min(SimTime(1.0, 0, 5 - me)), comm.global_max(SimTime(1.0, 0, 5 - me)),
            comm.global_sum(SimTime(0.5, me)),
        ]  # fmt: skip

    k = n * (n - 1) // 2
    expected = [
        11 - n, 10, n * 10**20 + k,
        0.5, n - 0.5, n / 2 + k,
        SimTime(1.0, 0, 6 - n), SimTime(1.0, 0, 5), SimTime(n / 2, k),
    ]  # fmt: skip
    for found in at_all(nodes, work):
        assert found == expected
        assert [*map(type, found)] == [int] * 3 + [float] * 3 + [SimTime] * 3


def test_numbers_of_several_kinds_meet(group: MakeGroup) -> None:
    nodes = group(3)
    given: list[Any] = [10**400, 2.5, np.int16(1)]
    assert at_all(nodes, lambda comm: comm.global_min(given[comm.get_node_id()])) == [1.0] * 3
    assert at_all(nodes, lambda comm: comm.global_sum(given[comm.get_node_id()])) == [np.inf] * 3
    given = [7, 2.5, SimTime(1.0, 1)]
    found = at_all(nodes, lambda comm: comm.global_max(given[comm.get_node_id()]))
    assert found == [SimTime(7.0)] * 3 and set(map(type, found)) == {SimTime}


def test_values_that_cannot_be_reduced_are_refused_before_anybody_waits(group: MakeGroup) -> None:
    (comm, _) = nodes = group(2)
    for call in (comm.global_min, comm.global_max):
        with pytest.raises(ValueError, match=r"global_m\w+ cannot order NaN"):
            call(NAN)
    for wrong in ("1", None, 1j, [1]):
        with pytest.raises(TypeError, match="global_sum takes an int, a float or a SimTime, not"):
            comm.global_sum(wrong)  # type: ignore[type-var]
    assert np.isnan(at_all(nodes, lambda comm: comm.global_sum(NAN))).all()


@pytest.mark.parametrize(
    "given",
    [[NAN, SimTime(1.0), 2], [SimTime(np.inf), 1.0, -np.inf], [-(10**400), SimTime(np.inf), 0]],
    ids=["NaN", "infinities", "a huge int"],
)
def test_simtimes_without_a_sum_are_told_to_all(group: MakeGroup, given: list[Any]) -> None:
    nodes = group(3)

    def reason(comm: SpeedesComm) -> str:
        with pytest.raises(ValueError, match="global_sum: these SimTimes have no sum") as error:
            comm.global_sum(given[comm.get_node_id()])
        return str(error.value)

    assert len(set(at_all(nodes, reason))) == 1
    assert at_all(nodes, lambda comm: comm.global_sum(SimTime(1.0))) == [SimTime(3.0)] * 3


def test_nobody_passes_the_barrier_before_all_are_there(group: MakeGroup) -> None:
    nodes = group(3)
    passed: list[int] = []

    def work(comm: SpeedesComm) -> None:
        comm.barrier_sync()
        passed.append(comm.get_node_id())

    early = [Background(lambda comm=comm: work(comm)) for comm in nodes[:2]]
    early[0].join(0.2)
    assert passed == []
    work(nodes[2])
    results(early)
    assert sorted(passed) == [0, 1, 2]


@pytest.mark.usefixtures("any_fuzzy")
@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_fuzzy_barrier_is_over_when_all_have_entered(group: MakeGroup, n: int) -> None:
    nodes = group(n)
    for last in range(n):
        for comm in nodes[:last] + nodes[last + 1 :]:
            comm.enter_fuzzy_barrier()
            assert not comm.exit_fuzzy_barrier()
        # News may still be on its way; this checks that no node leaves too early.
        assert not any(comm.exit_fuzzy_barrier() for comm in nodes[:last] + nodes[last + 1 :])
        nodes[last].enter_fuzzy_barrier()
        at_all(nodes, lambda comm: wait_until(comm.exit_fuzzy_barrier))


def test_the_answer_depends_on_nobody_who_computes(group: MakeGroup) -> None:
    """Each of up to 16 nodes leaves, though the others call nothing after they have entered."""
    nodes = group(4)
    for comm in nodes:
        comm.enter_fuzzy_barrier()
    for comm in nodes:
        wait_until(comm.exit_fuzzy_barrier)


@pytest.mark.usefixtures("any_fuzzy")
def test_a_fast_node_is_one_barrier_ahead_at_most(group: MakeGroup) -> None:
    nodes = group(3)
    reached = [0, 0, 0]

    def work(comm: SpeedesComm) -> None:
        for number in range(1, 21):
            reached[comm.get_node_id()] = number
            comm.enter_fuzzy_barrier()
            while not comm.exit_fuzzy_barrier():
                pass
            assert min(reached) >= number

    at_all(nodes, work)


def test_fuzzy_errors(group: MakeGroup) -> None:
    comm, other = group(2)
    with pytest.raises(SFMError, match=r"in no fuzzy barrier: call enter_fuzzy_barrier\(\) first"):
        comm.exit_fuzzy_barrier()
    comm.enter_fuzzy_barrier()
    with pytest.raises(SFMError, match=r"already: call exit_fuzzy_barrier\(\) until"):
        comm.enter_fuzzy_barrier()
    other.enter_fuzzy_barrier()
    wait_until(comm.exit_fuzzy_barrier)
    with pytest.raises(SFMError, match="no fuzzy barrier"):
        comm.exit_fuzzy_barrier()
