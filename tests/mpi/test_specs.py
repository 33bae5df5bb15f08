"""What message specifications mean, and elements in memory."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi.base.constants import ERR_BUFFER, ERR_OP, ERR_TYPE
from sfm_kernel.mpi.base.errors import MPIError
from sfm_kernel.mpi.buffers import (
    BOTTOM,
    Elements,
    address,
    buffer,
    for_recv,
    for_send,
    nothing,
)
from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.predefined import (
    BYTE,
    CHAR,
    DATATYPE_NULL,
    DOUBLE,
    INT,
    UNSIGNED_CHAR,
)

view_of: Any = memoryview  # NumPy tells type checkers of buffers from Python 3.12 on

DATA = np.arange(6, dtype=np.intc)

EVERY_OTHER = INT.Create_vector(3, 1, 2).Commit()
"""Items 0, 2 and 4."""

MIXED = Datatype.Create_struct([1, 1], [0, 8], [INT, DOUBLE]).Commit()


def values(elements: Elements) -> list[Any]:
    found: list[Any] = elements.array().tolist()
    return found


# ---- one buffer ----


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (DATA, [0, 1, 2, 3, 4, 5]),
        (DATA.reshape(2, 3), [0, 1, 2, 3, 4, 5]),
        (DATA.reshape(2, 3).T, [0, 1, 2, 3, 4, 5]),
        (DATA[2:], [2, 3, 4, 5]),
        (DATA[:0], []),
        (DATA[0], [0]),
        (view_of(DATA), [0, 1, 2, 3, 4, 5]),
        (array.array("i", [7, 8]), [7, 8]),
        ([DATA], None),
        ([DATA, INT], [0, 1, 2, 3, 4, 5]),
        ((DATA, "i"), [0, 1, 2, 3, 4, 5]),
        ([DATA, "i4"], [0, 1, 2, 3, 4, 5]),
        ([DATA, np.dtype(np.intc)], [0, 1, 2, 3, 4, 5]),
        ([DATA, None], [0, 1, 2, 3, 4, 5]),
        ([DATA, 2], [0, 1]),
        ([DATA, np.int64(2)], [0, 1]),
        ([DATA, (2, 1)], [1, 2]),
        ([DATA, [2, 1]], [1, 2]),
        ([DATA, (None, 4)], [4, 5]),
        ([DATA, (2, None)], [0, 1]),
        ([DATA, 2, INT], [0, 1]),
        ([DATA, None, INT], [0, 1, 2, 3, 4, 5]),
        ([DATA, (2, 4), "i"], [4, 5]),
        ([DATA, 2, 3, INT], [3, 4]),
        ([DATA, None, 3, None], [3, 4, 5]),
        ([DATA, 0, INT], []),
        ([DATA, (0, 6), INT], []),
        ([buffer(DATA), "i"], [0, 1, 2, 3, 4, 5]),
        ([DATA.tobytes(), 1, "i"], [0]),
        ([DATA, 1, EVERY_OTHER], [0, 2, 4]),
        ([DATA, (1, 0), EVERY_OTHER], [0, 2, 4]),
        ([None, 0, INT], []),
        ([None, INT], []),
        ([BOTTOM, 0, INT], []),
        ([BOTTOM, INT], []),
    ],
)
def test_one_buffer(spec: Any, expected: list[int] | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="2 to 4 items"):
            for_send(spec)
        return
    elements = for_send(spec)
    assert values(elements) == expected
    assert elements.nbytes == 4 * len(expected) == elements.get().size


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (None, TypeError),
        (3, TypeError),
        (object, TypeError),
        ([[1, 2], 2, "i"], TypeError),
        ([{1: 2}, 1, "i"], TypeError),
        ([DATA, 1.0], TypeError),
        ([DATA, np.array([2])], TypeError),
        ([DATA, 0, 0, INT, None], ValueError),
        ([DATA, -1, INT], ValueError),
        ([DATA, 1, -1, INT], ValueError),
        ([DATA, 0, 7, INT], ValueError),
        ([DATA.tobytes()[:5], INT], ValueError),
        ([DATA, 0, 1, DATATYPE_NULL], ValueError),
        ([DATA, DATATYPE_NULL], ValueError),
        ([DATA, INT.Create_resized(0, -4)], ValueError),
        ([None, 1, INT], ValueError),
        ([DATA, 1, "\0"], KeyError),
        ([None, 0], KeyError),
        (BOTTOM, KeyError),
        (np.zeros(2, [("a", "i"), ("b", "d")]), KeyError),
        (np.zeros(3, ">i4"), BufferError),
        (np.zeros((3, 2))[:, 0], BufferError),
    ],
)
def test_what_is_no_buffer(spec: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        for_send(spec)


def test_a_foreign_byte_order_goes_as_it_is_when_the_datatype_is_given() -> None:
    data = np.arange(3, dtype=">i4")
    assert for_send([data, INT]).get().tobytes() == data.tobytes()


def test_a_datatype_is_neither_null_nor_uncommitted() -> None:
    for datatype in (DATATYPE_NULL, INT.Create_contiguous(2)):
        with pytest.raises(MPIError) as caught:
            for_send([DATA, 1, datatype])
        assert caught.value.Get_error_class() == ERR_TYPE
        assert for_send([DATA, 0, datatype]).nbytes == 0


@pytest.mark.parametrize("fixed", [b"abc", memoryview(b"abc"), buffer(b"abc"), "array"])
def test_what_is_readonly_can_be_sent_but_not_received_into(fixed: Any) -> None:
    if fixed == "array":
        fixed = np.frombuffer(b"abc", np.uint8)
    assert for_send(fixed).get().tobytes() == b"abc"
    for spec in (fixed, [fixed, CHAR], [fixed, 3, CHAR]):
        with pytest.raises(BufferError, match="read-only"):
            for_recv(spec)


def test_arrays_that_are_not_plain() -> None:
    matrix = np.arange(4.0).reshape(2, 2).view(np.matrix)
    assert values(for_send(matrix)) == values(for_send([matrix, DOUBLE])) == [0, 1, 2, 3]
    assert values(for_send(np.ma.array([1.0, 2.0], mask=[True, False]))) == [1, 2]
    times = np.array(["2000-01-01", "2000-01-02"], "M8[D]")
    assert values(for_send(times)) == [10957, 10958]
    assert for_send([times, BYTE]).get().tobytes() == times.tobytes()


def test_the_types_of_items() -> None:
    for code in "bhilBHILfdFD":
        assert for_send(np.zeros(2, code)).array().dtype == np.dtype(code)
    assert for_send(b"ab").datatype == UNSIGNED_CHAR == for_send(bytearray(2)).datatype
    assert for_send(np.zeros(2)).datatype == DOUBLE == for_send(array.array("d", [0])).datatype


def test_partitions_divide_what_is_inferred() -> None:
    assert for_send(DATA, 3).count == 2
    assert for_send([DATA, 2, INT], 3).count == 2
    with pytest.raises(ValueError, match="multiple of 4"):
        for_send(DATA, 4)


def test_nothing() -> None:
    assert nothing().nbytes == 0 and nothing().get().size == 0


# ---- elements in memory ----


def test_contiguous_elements_are_views() -> None:
    data = np.zeros((2, 3))
    elements = for_recv(data)
    elements.array()[1] = 5
    elements.get(16, 24).view(float)[:] = 6
    assert data.tolist() == [[0, 5, 6], [0, 0, 0]]
    elements.put_array(elements.array())
    elements.put_array(np.arange(6.0))
    assert data.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("step", [1, 3, 4, 5, 7, 12, 100])
@pytest.mark.parametrize("datatype", [INT, EVERY_OTHER, MIXED], ids=["INT", "vector", "struct"])
def test_data_go_in_chunks_of_any_size(datatype: Datatype, step: int) -> None:
    source = np.random.default_rng(step).integers(0, 256, 96, np.uint8)
    target = np.zeros(96, np.uint8)
    send, receive = for_send([source, 4, datatype]), for_recv([target, 4, datatype])
    packed = send.get().copy()
    assert packed.size == send.nbytes == 4 * datatype.Get_size()
    for start in range(0, send.nbytes, step):
        end = min(start + step, send.nbytes)
        assert (send.get(start, end) == packed[start:end]).all()
        receive.put(start, packed[start:end])
    assert (receive.get() == packed).all()
    untouched = np.full(96, 1, np.uint8)
    for_recv([untouched, 4, datatype]).put(0, np.zeros(send.nbytes, np.uint8))
    assert untouched.sum() == 96 - send.nbytes


def test_a_datatype_may_be_freed_while_its_elements_are_in_use() -> None:
    for datatype in (INT.Create_vector(3, 1, 2), INT.Create_contiguous(2)):
        datatype.Commit()
        elements = for_send([DATA, 1, datatype])
        expected = values(elements)
        datatype.Free()
        assert values(elements) == expected == values(elements.part(0, 1))


def test_a_part_of_elements() -> None:
    assert values(for_send(DATA).part(2, 3)) == [2, 3, 4]
    data = np.arange(12, dtype=np.intc)
    assert values(for_send([data, 2, EVERY_OTHER]).part(1, 1)) == [5, 7, 9]


def test_elements_may_reach_around_what_was_given() -> None:
    grid = np.arange(12, dtype=np.intc).reshape(3, 4)
    column = INT.Create_vector(3, 1, 4).Commit()
    assert values(for_send([grid[0, 1:], 1, column])) == [1, 5, 9]
    for_recv([grid[0, 3:], 1, column]).put_array(np.array([70, 80, 90], np.intc))
    assert grid[:, 3].tolist() == [70, 80, 90]


def test_more_elements_than_the_memory_has() -> None:
    data = np.zeros(4, np.intc)
    elements = for_recv([data, 100, INT])
    elements.put(0, np.full(4, 7, np.intc))
    assert data.tolist() == [7] * 4
    for touch in (
        lambda: elements.put(4, np.zeros(4, np.intc)),
        elements.get,
        lambda: for_send([data, 1, EVERY_OTHER]).get(),
        lambda: for_send([data, 100, EVERY_OTHER]).get(1200 - 4, 1200),
    ):
        with pytest.raises(MPIError, match="larger buffer") as caught:
            touch()
        assert caught.value.Get_error_class() == ERR_BUFFER


def test_elements_at_absolute_addresses() -> None:
    one, two = np.arange(3, dtype=np.intc), np.array([1.5])
    where = Datatype.Create_struct([3, 1], [address(one), address(two)], [INT, DOUBLE]).Commit()
    elements = for_send([BOTTOM, 1, where])
    assert elements.get().tobytes() == one.tobytes() + two.tobytes()
    for_recv([BOTTOM, 1, where]).put(0, np.zeros(20, np.uint8))
    assert not one.any() and not two.any()
    with pytest.raises(MPIError, match="no memory") as caught:
        for_send([BOTTOM, 1, INT])
    assert caught.value.Get_error_class() == ERR_BUFFER


def test_mixed_elements_have_no_array() -> None:
    with pytest.raises(MPIError) as caught:
        for_send([np.zeros(2), 1, MIXED]).array()
    assert caught.value.Get_error_class() == ERR_OP
