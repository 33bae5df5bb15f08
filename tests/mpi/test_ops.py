"""Operations, on objects and on arrays."""

from __future__ import annotations

import operator
import pickle
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi import MPI

NUMBERS = [MPI.MAX, MPI.MIN, MPI.SUM, MPI.PROD]
BITS = [MPI.BAND, MPI.BOR, MPI.BXOR]
LOGICAL = [MPI.LAND, MPI.LOR, MPI.LXOR]
PLACED = [MPI.MAXLOC, MPI.MINLOC]
ALL = [*NUMBERS, *BITS, *LOGICAL, *PLACED]


def local(op: MPI.Op, a: Any, b: Any) -> Any:
    """``a op b``, element by element."""
    result = b.copy()
    op.Reduce_local(a, result)
    return result


def test_on_objects() -> None:
    assert [op(2, 3) for op in [*NUMBERS, *BITS]] == [3, 2, 5, 6, 2 & 3, 2 | 3, 2 ^ 3]
    for x in (False, True):
        for y in (False, True):
            assert [op(x, y) for op in LOGICAL] == [x and y, x or y, x ^ y]
    assert (MPI.REPLACE(2, 3), MPI.NO_OP(2, 3)) == (3, 2)
    assert MPI.SUM([1], [2]) == [1, 2]


@pytest.mark.parametrize(
    ("x", "y", "largest", "smallest"),
    [
        ((1, 5), (2, 0), (2, 0), (1, 5)),
        ((1, 5), (1, 0), (1, 0), (1, 0)),
        ((1, 0), (1, 5), (1, 0), (1, 0)),
        (([1], "b"), ([1], "a"), ([1], "a"), ([1], "a")),
    ],
)
def test_the_first_place_of_the_extreme(x: Any, y: Any, largest: Any, smallest: Any) -> None:
    assert MPI.MAXLOC(x, y) == largest and MPI.MINLOC(list(x), list(y)) == smallest


def test_what_the_native_collectives_do_themselves_is_given_to_them() -> None:
    assert [op.python for op in NUMBERS] == [max, min, operator.add, operator.mul]
    found = [op.on_arrays(MPI.DOUBLE) for op in NUMBERS]
    assert found == [np.maximum, np.minimum, np.add, np.multiply]


def test_on_arrays() -> None:
    a, b = np.array([0, 3, 5, 0], "i4"), np.array([0, 2, 0, 7], "i4")
    for op, function in zip(
        [*NUMBERS, *BITS],
        [max, min, operator.add, operator.mul, operator.and_, operator.or_, operator.xor],
        strict=True,
    ):
        expected = [function(x, y) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        assert local(op, a, b).tolist() == expected
    assert [local(op, a, b).tolist() for op in LOGICAL] == [
        [0, 1, 0, 0],
        [0, 1, 1, 1],
        [0, 0, 1, 1],
    ]
    truths = np.array([True, False]), np.array([True, True])
    assert [local(op, *truths).tolist() for op in LOGICAL] == [
        [True, False],
        [True, True],
        [False, True],
    ]


def test_on_arrays_of_pairs() -> None:
    dtype = np.dtype([("value", "f8"), ("place", "i4")], align=True)
    a = np.array([(1.0, 5), (2.0, 1), (4.0, 9)], dtype)
    b = np.array([(1.0, 2), (3.0, 0), (0.0, 8)], dtype)
    for op, expected in (
        (MPI.MAXLOC, [(1.0, 2), (3.0, 0), (4.0, 9)]),
        (MPI.MINLOC, [(1.0, 2), (2.0, 1), (0.0, 8)]),
    ):
        result = b.copy()
        op.Reduce_local([a.view("u1"), 3, MPI.DOUBLE_INT], [result.view("u1"), 3, MPI.DOUBLE_INT])
        assert result.tolist() == expected


@pytest.mark.parametrize(
    ("op", "datatype"),
    [
        (MPI.BAND, MPI.DOUBLE),
        (MPI.LAND, MPI.FLOAT),
        (MPI.MAX, MPI.DOUBLE_COMPLEX),
        (MPI.SUM, MPI.BYTE),
        (MPI.SUM, MPI.C_BOOL),
        (MPI.SUM, MPI.DOUBLE_INT),
        (MPI.MINLOC, MPI.INT),
        (MPI.MAX, MPI.WCHAR),
        (MPI.REPLACE, MPI.INT),
        (MPI.NO_OP, MPI.INT),
        (MPI.SUM, MPI.INT.Create_contiguous(2)),
    ],
)
def test_what_mpi_does_not_define_is_refused(op: MPI.Op, datatype: MPI.Datatype) -> None:
    with pytest.raises(MPI.Exception) as caught:
        op.on_arrays(datatype)
    assert caught.value.Get_error_class() == MPI.ERR_OP
    assert f"MPI.{op.__reduce__()}" in str(caught.value)


def test_predefined_operations_belong_to_mpi() -> None:
    for op in ALL:
        assert op.is_commutative and op.Is_commutative() and op.is_predefined
        with pytest.raises(MPI.Exception):
            op.Free()
    assert not MPI.REPLACE.Is_commutative() and MPI.OP_NULL.is_predefined
    with pytest.raises(ValueError, match="null"):
        MPI.OP_NULL(1, 2)
    with pytest.raises(MPI.Exception):
        MPI.OP_NULL.Is_commutative()


def minus(a: Any, b: Any, datatype: Any) -> Any:
    """``a - b`` of objects, or of buffers of INT."""
    if datatype is None:
        return a - b
    left, right = (np.frombuffer(one, "i4") for one in (a, b))
    right[:] = left - right
    return None


def test_an_operation_of_the_program() -> None:
    op = MPI.Op.Create(minus)
    assert not op.is_predefined and not op.is_commutative and op.toint() == -1
    assert MPI.Op.Create(minus, True).Is_commutative()
    a, b = np.array([5, 6], "i4"), np.array([1, 2], "i4")
    assert op(5, 3) == MPI.Op(op)(5, 3) == 2
    assert local(op, a, b).tolist() == [4, 4] and b.tolist() == [1, 2]
    combined = op.on_arrays(MPI.INT)(a, b)
    assert combined.tolist() == [4, 4] and b.tolist() == [1, 2]
    again = pickle.loads(pickle.dumps(op))
    op.Free()
    assert again(5, 3) == 2 and again != op and not op


def test_an_operation_sees_elements_as_they_lie_in_memory() -> None:
    seen = []

    def look(a: Any, b: Any, datatype: Any) -> None:
        seen.append((len(a), len(b), datatype))
        np.frombuffer(b, "i4")[::2] += np.frombuffer(a, "i4")[::2]

    spread = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
    a, b = np.arange(8, dtype="i4"), np.full(8, 10, "i4")
    op = MPI.Op.Create(look)
    op.Reduce_local([a, 2, spread], [b, 2, spread])
    assert b.tolist() == [10, 10, 12, 10, 14, 10, 16, 10]
    assert seen == [(32, 32, spread)]
    op.Reduce_local([a, 0, spread], [b, 0, spread])
    assert len(seen) == 1
    spread.Free()
    op.Free()


def test_there_may_be_32_of_them() -> None:
    ops = [MPI.Op.Create(minus) for _ in range(32)]
    with pytest.raises(RuntimeError, match="Free"):
        MPI.Op.Create(minus)
    for op in ops:
        op.Free()
    MPI.Op.Create(minus).Free()
    with pytest.raises(AttributeError):
        MPI.Op.Create(3)  # type: ignore[arg-type]


def test_reduce_local_needs_two_buffers_that_fit() -> None:
    with pytest.raises(ValueError):
        MPI.SUM.Reduce_local(np.zeros(2), np.zeros(3))
    with pytest.raises(MPI.Exception):
        MPI.SUM.Reduce_local(MPI.IN_PLACE, np.zeros(3))
