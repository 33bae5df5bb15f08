"""Packing: large and small elements, parts of them, and external32."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi import MPI

COMM: Any = MPI.Comm._of(SimpleNamespace(freed=False))  # type: ignore[arg-type]
"""Packing asks only whether it is a communicator; the real ones would join a world."""
EXTERNAL = "external32"


def error_class(function: Any, *arguments: Any) -> int:
    with pytest.raises(MPI.Exception) as raised:
        function(*arguments)
    return raised.value.Get_error_class()


def bytes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.reshape(-1).view(np.uint8)


# ---- Pack and Unpack ----


def test_several_things_in_one_buffer() -> None:
    numbers, text = np.arange(5, dtype="i"), bytearray(b"abc")
    packed = bytearray(MPI.INT.Pack_size(5, COMM) + MPI.CHAR.Pack_size(3, COMM) + 1)
    end = MPI.INT.Pack(numbers, packed, 0, COMM)
    assert MPI.CHAR.Pack(text, packed, end, COMM) == len(packed) - 1
    other, words = np.zeros(5, "i"), bytearray(3)
    assert MPI.INT.Unpack(packed, 0, other, COMM) == end
    MPI.CHAR.Unpack(packed, end, words, COMM)
    assert other.tolist() == numbers.tolist() and words == text


def test_gaps_are_left_out_and_left_alone() -> None:
    column = MPI.INT.Create_vector(3, 1, 2).Create_resized(0, 24).Commit()
    source, packed = np.arange(12, dtype="i"), np.zeros(6, "i")
    assert column.Pack(source, packed, 0, COMM) == 24
    assert packed.tolist() == [0, 2, 4, 6, 8, 10]
    target = np.full(12, -1, "i")
    column.Unpack(packed, 0, target, COMM)
    assert target.tolist() == [0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1]


def test_what_does_not_fit() -> None:
    numbers = np.zeros(4, "i")
    assert error_class(MPI.INT.Pack, numbers, bytearray(15), 0, COMM) == MPI.ERR_TRUNCATE
    assert error_class(MPI.INT.Pack, numbers, bytearray(16), 1, COMM) == MPI.ERR_TRUNCATE
    assert error_class(MPI.INT.Unpack, bytearray(15), 0, numbers, COMM) == MPI.ERR_TRUNCATE
    assert error_class(MPI.INT.Pack, numbers, bytearray(16), -1, COMM) == MPI.ERR_ARG
    assert error_class(MPI.INT.Pack, numbers, bytearray(16), 0, MPI.COMM_NULL) == MPI.ERR_COMM
    assert error_class(MPI.INT.Pack_size, -1, COMM) == MPI.ERR_COUNT
    before = MPI.INT.Create_hindexed([1], [-4]).Create_resized(0, 4).Commit()
    assert error_class(before.Pack, numbers, bytearray(16), 0, COMM) == MPI.ERR_BUFFER
    with pytest.raises(TypeError, match="communicator"):
        MPI.INT.Pack_size(1, None)  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        MPI.INT.Pack(numbers, bytes(16), 0, COMM)


# ---- layouts ----


def test_a_contiguous_type_is_not_copied() -> None:
    memory = np.arange(64, dtype=np.uint8)
    rows = MPI.INT.Create_vector(2, 2, 2).Create_subarray([3], [3], [0])
    assert rows._live.contiguous
    assert np.shares_memory(rows._pack(memory, 4, 1), memory)
    padded = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT])
    assert not padded._live.contiguous
    assert not np.shares_memory(padded._pack(memory, 0, 1), memory)


def test_order_makes_a_difference() -> None:
    backwards = MPI.INT.Create_indexed_block(1, [1, 0])
    numbers = np.arange(2, dtype="i")
    assert backwards.Get_true_extent() == MPI.INT.Create_contiguous(2).Get_true_extent()
    assert not backwards._live.contiguous
    assert backwards._pack(bytes_of(numbers), 0, 1).view("i").tolist() == [1, 0]


def test_a_transposed_matrix() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    column = MPI.DOUBLE.Create_vector(2, 1, 3).Create_resized(0, 8)
    packed = column._pack(bytes_of(matrix), 0, 3).view("f8")
    assert packed.tolist() == matrix.T.reshape(-1).tolist()


def test_many_strided_blocks_take_no_memory() -> None:
    count = 10**6
    numbers = np.arange(2 * count, dtype="i")
    tracemalloc.start()
    try:
        every_other = MPI.INT.Create_vector(count, 1, 2)
        packed = every_other._pack(bytes_of(numbers), 0, 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert np.array_equal(packed.view("i"), numbers[::2])
    assert peak < packed.nbytes + 100_000
    back = np.zeros_like(numbers)
    every_other._unpack(packed, bytes_of(back), 0)
    assert np.array_equal(back[::2], numbers[::2]) and not back[1::2].any()


@pytest.mark.parametrize("most", [1, 40], ids=["blocks of few lengths", "of many lengths"])
def test_many_blocks_anywhere(most: int) -> None:
    random = np.random.default_rng(most)
    lengths = random.integers(0, most + 1, 20_000)
    gaps = random.integers(0, 3, lengths.size)
    where = np.cumsum(lengths + gaps) - lengths
    numbers = np.arange(int(where[-1] + lengths[-1]) + 1)
    chosen = np.concatenate([np.arange(d, d + n) for d, n in zip(where, lengths, strict=True)])
    blocks = MPI.LONG.Create_indexed(lengths, where)
    packed = blocks._pack(bytes_of(numbers), 0, 1)
    assert np.array_equal(packed.view("l"), chosen)
    part = blocks._live.pack(bytes_of(numbers), 0, 1001, 50_007)
    assert np.array_equal(part, packed[1001:50_007])
    back = np.zeros_like(numbers)
    for start in range(0, packed.size, 7777):
        blocks._live.unpack(bytes_of(back), 0, packed[start : start + 7777], start)
    assert np.array_equal(back[chosen], chosen) and not np.delete(back, chosen).any()


def test_large_blocks_anywhere() -> None:
    where = np.array([0, 20_000, 5_000, 50_000])
    memory = np.random.default_rng(0).integers(0, 256, 60_000, np.uint8)
    blocks = MPI.BYTE.Create_indexed_block(5_000, where)
    expected = np.concatenate([memory[d : d + 5_000] for d in where])
    assert np.array_equal(blocks._pack(memory, 0, 1), expected)
    back = np.zeros_like(memory)
    blocks._unpack(expected, back, 0)
    assert np.array_equal(blocks._pack(back, 0, 1), expected)


def test_data_that_end_inside_an_element() -> None:
    pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT])
    memory = np.full(32, 255, np.uint8)
    pair._unpack(np.zeros(17, np.uint8), memory, 0)
    assert memory.tolist() == [0] * 12 + [255] * 4 + [0] * 5 + [255] * 11


def test_no_data() -> None:
    nothing = MPI.INT.Create_vector(0, 1, 1)
    memory = np.zeros(4, np.uint8)
    assert nothing._pack(memory, 0, 5).size == 0
    nothing._unpack(memory[:0], memory, 0)
    assert MPI.INT._pack(memory, 0, 0).size == 0


def test_basic_elements() -> None:
    pair = MPI.DOUBLE_INT
    assert [pair._elements_in(n) for n in (0, 8, 12, 20)] == [0, 1, 2, 3]
    assert pair._elements_in(9) == MPI.UNDEFINED
    assert [pair._bytes_of_elements(n) for n in (0, 1, 2, 3)] == [0, 8, 12, 20]
    complexes = MPI.C_DOUBLE_COMPLEX.Create_contiguous(2)
    assert complexes._elements_in(16) == 1 and complexes._elements_in(8) == MPI.UNDEFINED


def test_types_for_reductions() -> None:
    state = MPI.INT.Create_vector(2, 3, 4)._live
    assert state.base == np.dtype("i") and state.basic is MPI.INT._live.basic
    mixed = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT])._live
    assert mixed.base is None and mixed.basic is None
    pair = MPI.DOUBLE_INT._live
    assert pair.base is not None and pair.base.itemsize == pair.size
    assert pair.base.names == ("value", "index")


# ---- external32 ----


@pytest.mark.parametrize(
    ("datatype", "value", "canonical"),
    [
        (MPI.SHORT, np.int16(-2), "fffe"),
        (MPI.INT, np.int32(1), "00000001"),
        (MPI.LONG, np.int64(-2), "fffffffe"),
        (MPI.UNSIGNED_LONG, np.uint64(0xFFFFFFFF), "ffffffff"),
        (MPI.LONG_LONG, np.int64(-2), "fffffffffffffffe"),
        (MPI.FLOAT, np.float32(1), "3f800000"),
        (MPI.FLOAT16_T, np.float16(1), "3c00"),
        (MPI.DOUBLE, np.float64(-0.1), "bfb999999999999a"),
        (MPI.C_FLOAT_COMPLEX, np.complex64(1 - 2j), "3f800000c0000000"),
        (MPI.C_BOOL, np.bool_(True), "01"),
        (MPI.CHAR, np.bytes_(b"a"), "61"),
        (MPI.WCHAR, np.str_("é"), "00e9"),
        (MPI.BYTE, np.uint8(200), "c8"),
        (MPI.AINT, np.intp(258), "0000000000000102"),
    ],
)
def test_canonical_form(datatype: MPI.Datatype, value: Any, canonical: str) -> None:
    array = np.array([value])
    out = np.zeros(datatype.Pack_external_size(EXTERNAL, 1), np.uint8)
    assert datatype.Pack_external(EXTERNAL, bytes_of(array), out, 0) == out.size
    assert out.tobytes().hex() == canonical
    back = np.zeros_like(array)
    assert datatype.Unpack_external(EXTERNAL, out, 0, bytes_of(back)) == out.size
    assert back == array


@pytest.mark.skipif(np.finfo("g").nmant != 63, reason="long double is not Intel's")
def test_canonical_long_double() -> None:
    tiny = np.nextafter(np.longdouble(0), np.longdouble(1))
    values = np.array([1.5, -0.1, 0, -0.0, np.inf, -np.inf, np.nan, tiny], "g")
    out = np.zeros(16 * values.size, np.uint8)
    MPI.LONG_DOUBLE.Pack_external(EXTERNAL, values, out, 0)
    words = [out[n : n + 16].tobytes().hex() for n in range(0, out.size, 16)]
    assert words[0] == "3fff8" + "0" * 27 and words[1] == "bffb999999999999a" + "0" * 15
    assert words[3:6] == ["8" + "0" * 31, "7fff" + "0" * 28, "ffff" + "0" * 28]
    back = np.zeros_like(values)
    MPI.LONG_DOUBLE.Unpack_external(EXTERNAL, out, 0, back)
    assert np.array_equal(back, values, equal_nan=True)
    assert np.array_equal(np.signbit(back[:6]), np.signbit(values[:6]))


@pytest.mark.skipif(np.finfo("g").nmant != 63, reason="long double is not Intel's")
@pytest.mark.parametrize(
    ("canonical", "value"),
    [
        ("3fff0000000000000001000000000000", np.longdouble(1)),  # half a unit: to the even one
        ("3fff0000000000000003000000000000", 1 + 2 * np.finfo("g").eps),
        ("3fffffffffffffffffffffffffffffff", np.longdouble(2)),
        ("7fff0000000000000000000000000001", np.longdouble("nan")),
    ],
)
def test_long_doubles_are_rounded(canonical: str, value: Any) -> None:
    back = np.zeros(1, "g")
    MPI.LONG_DOUBLE.Unpack_external(EXTERNAL, bytes.fromhex(canonical), 0, back)
    assert np.array_equal(back, [value], equal_nan=True)


def test_external_numbers_that_numpy_has_not() -> None:
    data, out = bytearray(range(16)), bytearray(16)
    MPI.INTEGER16.Pack_external(EXTERNAL, data, out, 0)
    assert out == (data[::-1] if np.little_endian else data)
    back = bytearray(16)
    MPI.INTEGER16.Unpack_external(EXTERNAL, out, 0, back)
    assert back == data


def test_other_representations() -> None:
    assert error_class(MPI.INT.Pack_external_size, "native", 1) == MPI.ERR_UNSUPPORTED_DATAREP
    out = bytearray(4)
    code = error_class(MPI.INT.Pack_external, "mine", bytearray(4), out, 0)
    assert code == MPI.ERR_UNSUPPORTED_DATAREP
    with pytest.raises(TypeError, match="representation"):
        MPI.INT.Pack_external_size(3, 1)  # type: ignore[arg-type]
