"""Chunked transfers, without transfers: plans, buffers, namespaces, what is refused."""

from __future__ import annotations

import array
import mmap
from typing import Any

import numpy as np
import pytest

import sfm_kernel
from sfm_kernel import UnknownName
from sfm_kernel.mpi import CHUNK_BYTES, Namespace, mpi_getchunksize, plan
from sfm_kernel.mpi.items import destination, source

# --- plans -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "chunk", "parts"),
    [
        (0, 4, [(0, 0, True)]),
        (1, 4, [(0, 1, True)]),
        (4, 4, [(0, 4, True)]),
        (5, 4, [(0, 4, False), (4, 5, True)]),
        (8, 4, [(0, 4, False), (4, 8, True)]),  # an exact multiple has no empty last chunk
        (9, 4, [(0, 4, False), (4, 8, False), (8, 9, True)]),
        (3, 1, [(0, 1, False), (1, 2, False), (2, 3, True)]),
    ],
)
def test_plan(count: int, chunk: int, parts: list[tuple[int, int, bool]]) -> None:
    assert list(plan(count, chunk)) == parts


def test_items_of_a_chunk() -> None:
    assert mpi_getchunksize("float64") == CHUNK_BYTES // 8
    assert mpi_getchunksize(np.int32, 10) == 2
    assert mpi_getchunksize("complex128", 3) == 1, "at least one goes in each"
    assert mpi_getchunksize(float, np.int64(80)) == 10
    for wrong, error in ((0, ValueError), (-8, ValueError), (1.5, TypeError), (None, TypeError)):
        with pytest.raises(error, match="chunk_bytes"):
            mpi_getchunksize("float64", wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "nonsense", object, "V8", "f8,i4", "U", 7])
def test_datatypes_that_are_none(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"NumPy type|items cannot be"):
        mpi_getchunksize(wrong)


# --- buffers -----------------------------------------------------------------------------------


def ten(kind: str) -> Any:
    """0.0 … 9.0 in a writable buffer of this kind."""
    numbers = np.arange(10.0)
    if kind == "mmap":
        memory = mmap.mmap(-1, 80)
        memory[:] = numbers.tobytes()
        return memory
    return {
        "list": numbers.tolist,
        "array": numbers.copy,
        "array.array": lambda: array.array("d", numbers.tolist()),
        "bytearray": lambda: bytearray(numbers.tobytes()),
        "bytearray with a rest": lambda: bytearray(numbers.tobytes() + b"1234567"),
        "memoryview": lambda: memoryview(numbers.copy()),
        "every second": lambda: np.repeat(numbers, 2)[::2],
        "backwards": lambda: numbers[::-1].copy()[::-1],
        "two dimensions": lambda: numbers.reshape(2, 5).copy(),
    }[kind]()


KINDS = (
    "list", "array", "array.array", "bytearray", "bytearray with a rest", "memoryview", "mmap",
    "every second", "backwards", "two dimensions",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_items_of_every_kind_of_buffer(kind: str) -> None:
    buf = ten(kind)
    items = destination(buf, 2, 6, "float64")
    assert items.get(0, 6).tolist() == [2, 3, 4, 5, 6, 7] and items.get(4, 4).tolist() == []
    assert items.get(1, 3).flags.c_contiguous
    items.put(3, 5, np.array([-1.0, -2.0]))
    assert source(buf, 0, 10, float).get(0, 10).tolist() == [0, 1, 2, 3, 4, -1, -2, 7, 8, 9]
    for offset, count in ((5, 6), (11, 0), (0, 11)):
        with pytest.raises(ValueError, match="which has 10 items"):
            source(buf, offset, count, "f8")


def test_a_list_gets_pythons_own_values() -> None:
    got: list[Any] = [0] * 3
    items = destination(got, 0, 3, "int16")
    items.put(0, 3, np.array([1, 2, 3], "int16"))
    assert got == [1, 2, 3] and type(got[0]) is int


@pytest.mark.parametrize(
    ("values", "datatype", "as_sent"),
    [
        ([1, 2], "float64", [1.0, 2.0]),
        ([True, False], "int8", [1, 0]),
        ([1, 255], "uint8", [1, 255]),
        ([2**64 - 1], "uint64", [2**64 - 1]),
        ([1, 2.5], "complex64", [1, 2.5]),
        ([2**53, -(2**53), 2**60, True], "float64", [2.0**53, -(2.0**53), 2.0**60, 1.0]),
        ([2**53 + 2, 0.5], "float64", [2.0**53 + 2, 0.5]),
        ([2**24, -(2**63)], "float32", [2.0**24, -(2.0**63)]),
        ([1e300, float(2**53 + 1)], "float64", [1e300, 2.0**53]),
        ([float("inf"), 16777217.0], "float32", [float("inf"), 16777216.0]),  # floats are rounded
        ((1, 2), "int64", [1, 2]),
        (["ab", "c"], "U3", ["ab", "c"]),
        ([b"ab"], "S2", [b"ab"]),
        ([np.datetime64("2007-06-25")], "datetime64[D]", [np.datetime64("2007-06-25").item()]),
    ],
)
def test_lists_become_items(values: Any, datatype: str, as_sent: list[Any]) -> None:
    assert source(values, 0, len(values), datatype).get(0, len(values)).tolist() == as_sent


@pytest.mark.parametrize(
    ("values", "datatype", "error"),
    [
        ([1.5], "int64", TypeError),  # would lose the half
        ([1j], "float64", TypeError),
        (["7"], "int64", TypeError),
        ([None], "float64", TypeError),
        ([[1, 2], [3, 4]], "int64", TypeError),
        (["abcd"], "U3", TypeError),
        ([300], "uint8", OverflowError),
        ([np.int64(300)], "uint8", OverflowError),
        ([-1], "uint64", OverflowError),
        ([2**63], "int64", OverflowError),
        ([2**53 + 1], "float64", OverflowError),  # the nearest float is another integer
        ([-(2**53) - 1], "float64", OverflowError),
        ([2**53 + 1, 0.5], "float64", OverflowError),
        ([2**53 + 1, 1j], "complex128", OverflowError),
        ([np.int64(2**63 - 1)], "float64", OverflowError),
        ([2**64 - 1], "float64", OverflowError),
        ([16777217], "float32", OverflowError),
        ([2049], "float16", OverflowError),
        ([65536], "float16", OverflowError),  # would be infinite
        ([1e300], "float32", OverflowError),
        ([1, -1e300], "float32", OverflowError),
        ([1e300j], "complex64", OverflowError),
        ([2**70], "float64", TypeError),  # NumPy has no numbers as large
    ],
)
def test_values_that_would_change(values: Any, datatype: str, error: type[Exception]) -> None:
    items = source(values, 0, len(values), datatype)
    with pytest.raises(error, match=f"items 0 to {len(values) - 1} of the list"):
        items.get(0, len(values))


@pytest.mark.parametrize(
    ("buf", "error", "says"),
    [
        (np.arange(3, dtype="float32"), TypeError, "float32, and datatype says float64"),
        (np.arange(3, dtype=">f8"), TypeError, ">f8"),
        (array.array("i", [1]), TypeError, "int32"),
        (memoryview(bytearray(32))[::2], TypeError, "uint8"),
        (np.zeros((4, 4)).T[1:], ValueError, "not contiguous"),
        ("text", TypeError, "not str"),
        ({1: 2}, TypeError, "not dict"),
        (None, TypeError, "not NoneType"),
        (range(3), TypeError, "not range"),
    ],
)
def test_buffers_that_are_refused(buf: Any, error: type[Exception], says: str) -> None:
    for items in (source, destination):
        with pytest.raises(error, match=says):
            items(buf, 0, 1, "float64")


def test_read_only_buffers_can_only_be_sent() -> None:
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    for buf in (frozen, frozen.tobytes(), memoryview(frozen)):
        assert source(buf, 1, 2, "f8").get(0, 2).tolist() == [1, 2]
        with pytest.raises(ValueError, match="read-only"):
            destination(buf, 0, 1, "f8")
    with pytest.raises(TypeError, match="not tuple"):
        destination((1.0, 2.0), 0, 1, "f8")


@pytest.mark.parametrize("buf", [[], (), b"", bytearray(), np.empty(0), array.array("d")])
def test_nothing_can_be_sent_from_an_empty_buffer(buf: Any) -> None:
    assert source(buf, 0, 0, "f8").get(0, 0).tolist() == []
    with pytest.raises(ValueError, match="which has 0 items"):
        source(buf, 0, 1, "f8")


@pytest.mark.parametrize("argument", ["offset", "count"])
def test_offset_and_count_are_whole_numbers_from_0_on(argument: str) -> None:
    given: dict[str, Any] = {"offset": 0, "count": 1}
    for wrong, error in ((-1, ValueError), (1.0, TypeError), ("1", TypeError), (None, TypeError)):
        with pytest.raises(error, match=argument):
            source([1.0], **given | {argument: wrong}, datatype="f8")
    assert source([1.0, 2.0], **given | {argument: np.int32(1)}, datatype="f8").count == 1


# --- namespaces --------------------------------------------------------------------------------


def test_ranks_are_members() -> None:
    comm = Namespace("some", ("A", 5, "C"))
    assert [comm.rank_to_name(rank) for rank in range(3)] == ["A", 5, "C"]
    assert comm.name_to_rank("C") == 2 and comm.rank_to_name(np.int64(1)) == 5
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match=f"rank {wrong} is not in 'some'.*0 to 2"):
            comm.rank_to_name(wrong)
    with pytest.raises(TypeError, match="whole number"):
        comm.rank_to_name("A")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="'B'"):
        comm.name_to_rank("B")
    assert comm == Namespace("some", ["A", 5, "C"])  # type: ignore[arg-type]


@pytest.mark.parametrize("members", [(), ("A", "A")])
def test_members_are_there_once(members: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="one member or more, each once"):
        Namespace("some", members)
    with pytest.raises(TypeError, match="is a text"):
        Namespace(7, ("A",))  # type: ignore[arg-type]


def test_the_namespace_of_a_world(world: str) -> None:
    with sfm_kernel.join(world, "A") as sfm, sfm_kernel.join(world, "B"):
        with sfm_kernel.join(world, "home", guest=True):
            assert Namespace.world(sfm) == Namespace("world", ("A", "B"))
        with sfm_kernel.join(world, rank=5), pytest.raises(sfm_kernel.SFMError, match="0, 1, 5"):
            Namespace.world(sfm)
