"""Collectives give the same with every algorithm and transport, for any number of members."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest

from sfm_kernel import Group, WouldBlock
from sfm_kernel.collectives import ALGORITHMS
from tests.contract.crowd import Crowd, crowd_of

SIZES = (1, 2, 3, 5)


@pytest.fixture(params=SIZES)
def crowd(request: pytest.FixtureRequest, kind: str, world: str) -> Iterator[Crowd]:
    with crowd_of(world, request.param) as made:
        yield made


def algorithms(group: Group, call: str, cut: bool = True) -> list[str | None]:
    """The algorithms that are possible here; None stands for the one that the group chooses."""
    left_out = {"flags"} if not group.is_local else set()
    left_out |= set() if cut else {"ring", "rabenseifner"}
    return [None, *(name for name in ALGORITHMS[call] if name not in left_out)]


def same(got: Any, due: Any) -> bool:
    if isinstance(due, np.ndarray):
        return (
            isinstance(got, np.ndarray)
            and (got.dtype, got.shape) == (due.dtype, due.shape)
            and bool((got == due).all())
        )
    return bool(type(got) is type(due) and got == due)


def concatenated(left: Any, right: Any) -> Any:
    return left + right


def affine(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """Composition of x -> a·x + b: associative, and not commutative."""
    return left[0] * right[0] % 97, (left[1] * right[0] + right[1]) % 97


OBJECTS: list[tuple[Callable[[int], Any], Callable[[Any, Any], Any]]] = [
    (lambda rank: rank + 1, operator.add),
    (lambda rank: 2**62 + rank, operator.add),
    (lambda rank: rank if rank % 2 else rank / 2, max),
    (float, min),
    (lambda rank: str(rank) * rank, concatenated),
    (lambda rank: [rank] * 1000, concatenated),
    (lambda rank: (rank + 2, rank + 3), affine),
    (lambda rank: bytes([rank]) * 3, concatenated),
]


def test_reductions_of_objects(crowd: Crowd) -> None:
    def program(group: Group) -> None:
        for make, op in OBJECTS:
            values = [make(rank) for rank in range(group.size)]
            value = values[group.rank]
            for algorithm in algorithms(group, "allreduce", cut=False):
                got = group.allreduce(value, op, algorithm=algorithm)
                assert same(got, reduce(op, values)), algorithm
            for algorithm in algorithms(group, "scan"):
                got = group.scan(value, op, algorithm=algorithm)
                assert same(got, reduce(op, values[: group.rank + 1])), algorithm
            for root in range(group.size):
                for algorithm in algorithms(group, "reduce"):
                    got = group.reduce(value, op, root, algorithm=algorithm)
                    due = reduce(op, values) if group.rank == root else None
                    assert same(got, due), (algorithm, root)

    assert not any(crowd.run(program))


ARRAYS: list[tuple[int, Any]] = [
    *[(1, float), (7, np.int64), (7, np.float32), (3, np.longdouble), (9, bool)],
    *[(1000, np.float32), (40_000, float), (3_001, np.int16)],
]


def test_reductions_of_arrays(crowd: Crowd) -> None:
    def program(group: Group) -> None:
        for length, dtype in ARRAYS:
            for op in (np.add, np.maximum):
                values = [
                    (np.arange(length) * (rank + 1) % 100).astype(dtype)
                    for rank in range(group.size)
                ]
                value, before = values[group.rank], values[group.rank].copy()
                for algorithm in algorithms(group, "allreduce"):
                    out = np.empty_like(value)
                    got = group.allreduce(value, op, algorithm=algorithm)
                    assert same(got, reduce(op, values)), (algorithm, length)
                    assert group.allreduce(value, op, out=out, algorithm=algorithm) is out
                    assert same(out, got) and same(value, before) and got is not value
                for algorithm in algorithms(group, "scan"):
                    got = group.scan(value, op, algorithm=algorithm)
                    assert same(got, reduce(op, values[: group.rank + 1])), algorithm
                for algorithm in algorithms(group, "reduce"):
                    got = group.reduce(value, op, group.size - 1, algorithm=algorithm)
                    if group.rank == group.size - 1:
                        assert same(got, reduce(op, values)), algorithm
                    else:
                        assert got is None
                in_place = value.copy()
                group.allreduce(in_place, op, out=in_place)
                assert same(in_place, reduce(op, values))

    assert not any(crowd.run(program))


def test_shapes_orders_and_operations_of_arrays(crowd: Crowd) -> None:
    def program(group: Group) -> None:
        base = np.arange(24.0).reshape(2, 3, 4) + group.rank
        total = sum(np.arange(24.0).reshape(2, 3, 4) + rank for rank in range(group.size))
        for algorithm in algorithms(group, "allreduce"):
            for value in (base, np.asfortranarray(base), base[::-1][::-1], base.copy()):
                assert same(group.allreduce(value, algorithm=algorithm), total), algorithm
            mixed = base if group.rank % 2 else np.asfortranarray(base)
            assert same(group.allreduce(mixed, min, algorithm=algorithm), base - group.rank)
            swapped = group.allreduce(base.astype(">f8"), algorithm=algorithm)
            assert np.array_equal(swapped, total), algorithm
            number = group.allreduce(np.float64(0.5))
            assert type(number) is np.float64 and number == group.size / 2
            scalar = group.allreduce(np.array(2.0), operator.mul, algorithm=algorithm)
            assert same(np.asarray(scalar), np.array(2.0**group.size))
            empty = group.allreduce(np.empty(0), algorithm=algorithm)
            assert same(empty, np.empty(0)), algorithm
        for algorithm in algorithms(group, "allreduce", cut=False):
            # Any function of two arrays; it may not be commutative.
            matrix = np.array([[1, group.rank], [0, 1]])
            product = group.allreduce(matrix, lambda a, b: a @ b, algorithm=algorithm)
            product[0, 0] += 0  # it belongs to the caller
            assert product.tolist() == [[1, sum(range(group.size))], [0, 1]]
            things = group.allreduce(np.array([None, group.rank], object), lambda a, b: b)
            assert things.tolist() == [None, group.size - 1]

    assert not any(crowd.run(program))


VALUES: list[Any] = [None, 5, True, "x" * 5000, b"bytes", {"a": [1, 2]}, np.arange(7.0)]


def test_values_from_one_and_for_all(crowd: Crowd) -> None:
    def program(group: Group) -> None:
        large = np.arange(300_000).reshape(3, -1)
        for root in range(group.size):
            for value in (*VALUES, large):
                for algorithm in algorithms(group, "bcast"):
                    given = value if group.rank == root else "ignored"
                    got = group.bcast(given, root, algorithm=algorithm)
                    assert same(got, value), (algorithm, root)
            values = [(rank, "y" * 4000 * rank) for rank in range(group.size)]
            for algorithm in algorithms(group, "gather"):
                got = group.gather(values[group.rank], root, algorithm=algorithm)
                assert got == (values if group.rank == root else None), (algorithm, root)
            for algorithm in algorithms(group, "scatter"):
                given = values if group.rank == root else None
                got = group.scatter(given, root, algorithm=algorithm)
                assert got == values[group.rank], (algorithm, root)

    assert not any(crowd.run(program))


def test_values_from_all_for_all(crowd: Crowd) -> None:
    def program(group: Group) -> None:
        for value in VALUES:
            for algorithm in algorithms(group, "allgather"):
                for got in group.allgather(value, algorithm=algorithm):
                    assert same(got, value), algorithm
        uneven = ["z" * 3000 * (rank % 2) for rank in range(group.size)]
        for algorithm in algorithms(group, "allgather"):
            assert group.allgather(uneven[group.rank], algorithm=algorithm) == uneven
        for algorithm in algorithms(group, "alltoall"):
            given = [(group.rank, rank) for rank in range(group.size)]
            got = group.alltoall(given, algorithm=algorithm)
            assert got == [(rank, group.rank) for rank in range(group.size)]

    assert not any(crowd.run(program))


def test_nobody_leaves_a_barrier_before_all_have_come(crowd: Crowd) -> None:
    came: list[int] = []

    def program(group: Group) -> None:
        for nth, algorithm in enumerate(algorithms(group, "barrier")):
            came.append(group.rank)
            group.barrier(algorithm=algorithm)
            assert len(came) >= (nth + 1) * group.size, algorithm
            group.barrier(algorithm=algorithm)

    assert not any(crowd.run(program))


def test_groups_inside_and_beside_each_other(kind: str, world: str) -> None:
    def program(group: Group) -> tuple[Any, ...]:
        sfm = group._team.sfm
        half = Group(sfm, [rank for rank in range(4) if rank % 2 == group.rank % 2][::-1])
        twin = Group(sfm, name="twin")
        assert half.members == [2, 0] if group.rank % 2 == 0 else [3, 1]
        first = half.allreduce(str(group.rank), concatenated)
        a = group.allreduce(1)
        b = twin.allreduce(10)
        assert (half.rank, half.size) == (1 - group.rank // 2, 2)
        return first, a, b, half.allgather(group.rank)

    with crowd_of(world, 4) as crowd:
        assert crowd.run(program) == [("20", 4, 40, [2, 0]), ("31", 4, 40, [3, 1])] * 2


def test_messages_of_users_are_not_touched(kind: str, world: str) -> None:
    def program(group: Group) -> Any:
        sfm = group._team.sfm
        seen: list[Any] = []
        sfm.buffering = 0 if group.rank == 0 else sfm.buffering
        with sfm.regcb(seen.append):
            for algorithm in algorithms(group, "allreduce"):
                group.allreduce(np.ones(5000), algorithm=algorithm)
        with pytest.raises(WouldBlock):
            sfm.recv_nb()
        return seen

    with crowd_of(world, 3) as crowd:
        assert crowd.run(program) == [[], [], []]
