"""Datatypes: the constants, the constructors, what they tell of themselves, and their end."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from sfm_kernel.mpi import MPI
from sfm_kernel.mpi.datatypes import by_code
from sfm_kernel.mpi.datatypes.named import NAMED
from sfm_kernel.mpi.util.dtlib import from_numpy_dtype, to_numpy_dtype

Datatype = MPI.Datatype
NULL = MPI.DATATYPE_NULL


def error_class(function: Any, *arguments: Any) -> int:
    with pytest.raises(MPI.Exception) as raised:
        function(*arguments)
    return raised.value.Get_error_class()


def bounds(datatype: Datatype) -> tuple[int, ...]:
    return (datatype.size, *datatype.Get_extent(), *datatype.Get_true_extent())


# ---- predefined ----


@pytest.mark.parametrize("name", NAMED)
def test_a_predefined_type(name: str) -> None:
    datatype = getattr(MPI, name)
    assert datatype.name.startswith("MPI") and datatype.is_named and datatype.is_predefined
    assert datatype.Get_envelope() == (0, 0, 0, 0, MPI.COMBINER_NAMED)
    assert datatype.decode() == (datatype, "NAMED", {})
    assert 0 < datatype.size <= datatype.extent == datatype.ub and datatype.lb == 0
    assert pickle.loads(pickle.dumps(datatype)) is datatype
    assert Datatype(datatype) == datatype and Datatype(datatype) is not datatype
    assert error_class(datatype.Free) == MPI.ERR_TYPE and datatype
    assert error_class(datatype.Get_contents) == MPI.ERR_TYPE
    datatype.free()
    assert datatype


def test_sizes_are_those_of_numpy() -> None:
    for code, datatype in MPI._typedict.items():
        if code[0] in "bhilqBHILQefdgFDGpP" and code[-1:] != "6":
            assert datatype.size == np.dtype(code).itemsize, code
            assert MPI._typealign(datatype) == np.dtype(code).alignment, code


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SHORT_INT", (6, 0, 8, 0, 8)),
        ("INT_INT", (8, 0, 8, 0, 8)),
        ("FLOAT_INT", (8, 0, 8, 0, 8)),
        ("DOUBLE_INT", (12, 0, 16, 0, 12)),
        ("LONG_INT", (12, 0, 16, 0, 12)),
        ("LOGICAL16", (16, 0, 16, 0, 16)),
        ("COMPLEX4", (4, 0, 4, 0, 4)),
        ("BFLOAT16_T", (2, 0, 2, 0, 2)),
    ],
)
def test_layout_of_what_numpy_has_not(name: str, expected: tuple[int, ...]) -> None:
    assert bounds(getattr(MPI, name)) == expected


def test_names_and_aliases() -> None:
    assert MPI.LONG_LONG.name == "MPI_LONG_LONG_INT" and MPI.TWOINT.name == "MPI_2INT"
    assert MPI.FLOAT64_T is MPI.DOUBLE and MPI.F_INT is MPI.INTEGER and MPI.BOOL is MPI.C_BOOL
    assert NULL.name == "MPI_DATATYPE_NULL" and not NULL and NULL.is_predefined
    named = MPI.INT.Dup()
    assert named.name == ""
    named.name = "x" * 200
    assert named.name == "x" * (MPI.MAX_OBJECT_NAME - 1)
    assert "xxx" in repr(named) and "MPI_INT" in repr(MPI.INT)


def test_codes() -> None:
    assert Datatype.fromcode("d") == MPI.DOUBLE and MPI.DOUBLE.tocode() == "d"
    assert MPI.INT32_T.tocode() == "i4" and MPI.INT32_T.typechar == "i"
    assert (MPI.DOUBLE_INT.typechar, MPI.DOUBLE_INT.typestr) == ("V", "V16")
    assert (NULL.typechar, NULL.typestr) == ("", "")
    assert MPI.INT.Dup().Dup().tocode() == "i" and MPI.INT.Create_contiguous(2).typestr == "V8"
    for make in (lambda: Datatype.fromcode("@?"), NULL.tocode, MPI.DOUBLE_INT.tocode):
        with pytest.raises(ValueError):
            make()
    for dtype in ("i4", "f8", "c16", "?", "S1", "U1"):
        assert by_code(np.dtype(dtype)).size == np.dtype(dtype).itemsize
    for dtype in (">i4", "S2", "i4,i4"):
        with pytest.raises(KeyError):
            by_code(np.dtype(dtype))


def test_types_by_what_they_hold() -> None:
    sizes = [Datatype.Create_f90_integer(r).size for r in (1, 4, 9, 18, 19)]
    assert sizes == [1, 2, 4, 8, 16]
    assert Datatype.Create_f90_real(MPI.UNDEFINED, 300).typestr == "f8"
    assert Datatype.Create_f90_complex(6, 30).typestr == "c8"
    one = Datatype.Create_f90_real(15, 300)
    assert one == Datatype.Create_f90_real(15, 300) and one != MPI.DOUBLE
    assert one.is_predefined and not one.is_named
    assert one.decode() == (NULL, "F90_REAL", {"p": 15, "r": 300})
    assert one.Get_contents() == ([15, 300], [], [], [])
    assert pickle.loads(pickle.dumps(one)) == one
    assert error_class(Datatype.Create_f90_integer, 99) == MPI.ERR_ARG
    assert error_class(Datatype.Create_f90_real, 99, 1) == MPI.ERR_ARG
    assert Datatype.Match_size(MPI.TYPECLASS_REAL, 8) == MPI.REAL8
    assert error_class(Datatype.Match_size, MPI.TYPECLASS_REAL, 3) == MPI.ERR_ARG
    assert error_class(Datatype.Match_size, 99, 4) == MPI.ERR_ARG
    assert Datatype.Get_value_index(MPI.DOUBLE, MPI.INT) == MPI.DOUBLE_INT
    assert Datatype.Get_value_index(MPI.DOUBLE, MPI.FLOAT) == NULL
    assert error_class(Datatype.Get_value_index, NULL, MPI.INT) == MPI.ERR_TYPE


# ---- constructors ----


def struct(lengths: list[int], where: list[int], *parts: Datatype) -> Datatype:
    return Datatype.Create_struct(lengths, where, parts)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (MPI.INT.Create_vector(3, 2, -4), (24, -32, 40, -32, 40)),
        (MPI.INT.Create_hvector(3, 2, -5), (24, -10, 18, -10, 18)),
        (MPI.INT.Create_indexed([1, 0, 2], [5, -100, 1]), (12, 4, 20, 4, 20)),
        (MPI.INT.Create_hindexed_block(2, [4, 1]), (16, 1, 11, 1, 11)),
        (MPI.INT.Create_resized(8, -20).Create_contiguous(3), (12, -32, 20, -40, 44)),
        (MPI.INT.Create_subarray([4, 5], [2, 3], [1, 1]), (24, 0, 80, 24, 32)),
        (MPI.INT.Create_contiguous(0), (0, 0, 0, 0, 0)),
        (MPI.DOUBLE_INT.Create_contiguous(2), (24, 0, 32, 0, 28)),
        (struct([1, 1], [0, 8], MPI.DOUBLE, MPI.CHAR), (9, 0, 16, 0, 9)),
        (struct([1, 1], [3, 8], MPI.CHAR, MPI.INT), (5, 3, 12, 3, 9)),
        (struct([1, 1], [0, 9], MPI.INT, MPI.INT), (8, 0, 13, 0, 13)),
        (struct([0, 1], [0, 1], MPI.DOUBLE, MPI.CHAR), (1, 1, 1, 1, 1)),
        (struct([], []), (0, 0, 0, 0, 0)),
        (struct([1, 1], [0, 8], MPI.C_DOUBLE_COMPLEX, MPI.CHAR), (17, 0, 16, 0, 16)),
    ],
)
def test_bounds(made: Datatype, expected: tuple[int, ...]) -> None:
    assert bounds(made) == expected


def test_what_a_type_was_made_of() -> None:
    made = MPI.INT.Create_indexed([1, 2], [0, 4])
    assert made.Get_envelope() == (0, 0, 5, 1, MPI.COMBINER_INDEXED) == made.envelope
    assert made.Get_contents() == ([], [], [2, 1, 2, 0, 4], [MPI.INT])
    assert made.decode() == (
        MPI.INT,
        "INDEXED",
        {"blocklengths": [1, 2], "displacements": [0, 4]},
    )
    order, sizes = MPI.ORDER_F, [4, 5]
    made = MPI.INT.Create_subarray(sizes, [2, 3], [1, 0], order)
    assert made.Get_contents() == ([2, order], [], [4, 5, 2, 3, 1, 0], [MPI.INT])
    share = ([MPI.DISTRIBUTE_BLOCK] * 2, [MPI.DISTRIBUTE_DFLT_DARG] * 2, [2, 2])
    made = MPI.INT.Create_darray(4, 1, sizes, *share)
    integers = [4, 1, 2, *share[0], *share[1], *share[2], MPI.ORDER_C]
    assert made.Get_contents() == (integers, [], sizes, [MPI.INT])
    both = struct([1, 1], [0, 8], MPI.INT, made)
    old, combiner, params = both.decode()
    assert (old, combiner, params["datatypes"]) == (NULL, "STRUCT", [MPI.INT, made])
    assert both.combiner == MPI.COMBINER_STRUCT and not both.is_predefined


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (MPI.ERR_COUNT, lambda: MPI.INT.Create_contiguous(-1)),
        (MPI.ERR_COUNT, lambda: MPI.INT.Create_vector(1, -1, 1)),
        (MPI.ERR_COUNT, lambda: MPI.INT.Create_indexed([1, -1], [0, 1])),
        (MPI.ERR_COUNT, lambda: MPI.INT.Create_subarray([4], [-1], [0])),
        (MPI.ERR_ARG, lambda: MPI.INT.Create_subarray([4], [3], [2])),
        (MPI.ERR_ARG, lambda: MPI.INT.Create_subarray([4], [3], [0], 99)),
        (MPI.ERR_TYPE, lambda: NULL.Create_contiguous(1)),
        (MPI.ERR_TYPE, NULL.Get_size),
        (MPI.ERR_TYPE, NULL.decode),
        (MPI.ERR_TYPE, lambda: struct([1], [0], NULL)),
        (MPI.ERR_RANK, lambda: shared(rank=2)),
        (MPI.ERR_ARG, lambda: shared(psize=3)),
        (MPI.ERR_ARG, lambda: shared(how=MPI.DISTRIBUTE_NONE)),
        (MPI.ERR_ARG, lambda: shared(argument=2)),
        (MPI.ERR_ARG, lambda: shared(how=MPI.DISTRIBUTE_CYCLIC, argument=0)),
        (MPI.ERR_ARG, lambda: shared(how=99)),
    ],
)
def test_what_does_not_fit(code: int, call: Any) -> None:
    assert error_class(call) == code


def shared(
    rank: int = 0,
    psize: int = 2,
    how: int = MPI.DISTRIBUTE_BLOCK,
    argument: int = MPI.DISTRIBUTE_DFLT_DARG,
) -> Datatype:
    return MPI.INT.Create_darray(2, rank, [8], [how], [argument], [psize])


def test_arguments_of_other_types() -> None:
    numbers = np.array([0, 2], "i2")
    assert MPI.INT.Create_indexed_block(1, numbers).Get_contents()[2] == [2, 1, 0, 2]
    assert MPI.INT.Create_vector(np.int8(3), 1, 2.0).Get_contents()[2] == [3, 1, 2]
    for call, arguments in (
        (MPI.INT.Create_indexed, ([1.5], [0])),
        (MPI.INT.Create_contiguous, ("3",)),
        (Datatype.Create_struct, ([1], [0], [3])),
        (Datatype, ((1, 2),)),
    ):
        with pytest.raises(TypeError):
            call(*arguments)
    for call, arguments in (
        (MPI.INT.Create_indexed, ([1, 2], [0])),
        (Datatype.Create_struct, ([1], [0], [MPI.INT, MPI.INT])),
    ):
        with pytest.raises(ValueError, match="needed"):
            call(*arguments)


def test_subclasses_make_their_own() -> None:
    class Mine(Datatype):
        pass

    mine = Mine(MPI.INT)
    assert type(mine.Create_contiguous(2)) is Mine and type(mine.Dup()) is Mine
    assert type(Mine.Create_struct([1], [0], [MPI.INT])) is Mine


# ---- use and end ----


def test_committing() -> None:
    made = MPI.INT.Create_contiguous(2)
    data = np.zeros(2, "i")
    assert error_class(made.Pack_external, "external32", data, bytearray(8), 0) == MPI.ERR_TYPE
    assert not made.Dup()._live.committed
    assert made.Commit() is made and made.Dup()._live.committed
    assert made.Pack_external("external32", data, bytearray(8), 0) == 8


def test_a_freed_type_is_part_of_others_still() -> None:
    inner = MPI.INT.Create_vector(2, 1, 2)
    outer = inner.Create_contiguous(2)
    inner.Free()
    assert not inner and error_class(inner.Get_size) == MPI.ERR_TYPE
    assert outer.size == 16 and outer.decode()[0].size == 8
    copied = pickle.loads(pickle.dumps(outer))
    assert copied.Get_extent() == outer.Get_extent()
    precise = Datatype.Create_f90_integer(3)
    precise.Free()
    assert not precise


def test_attributes_go_with_the_last_reference() -> None:
    gone: list[int] = []
    keyval = Datatype.Create_keyval(
        copy_fn=lambda _type, _key, value: value + 1,
        delete_fn=lambda _type, _key, value: gone.append(value),
    )
    made = MPI.INT.Create_contiguous(2)
    made.Set_attr(keyval, 7)
    double = made.Dup()
    assert (made.Get_attr(keyval), double.Get_attr(keyval)) == (7, 8)
    (part,) = made.Create_contiguous(2).Get_contents()[3]
    assert part == made
    made.Free()
    assert gone == []
    part.Free()
    assert gone == [7]
    double.Free()
    assert gone == [7, 8]
    Datatype.Free_keyval(keyval)


def test_addresses() -> None:
    data = np.arange(4)
    address = MPI.Get_address(data)
    assert address == data.ctypes.data
    assert MPI.Aint_diff(MPI.Get_address(data[2:]), address) == 16
    assert MPI.Aint_add(address, 16) == address + 16
    assert MPI.Get_address(None) == MPI.Get_address(MPI.BOTTOM)


# ---- NumPy's types ----


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype("i4"),
        np.dtype("3f8"),
        np.dtype("(2,3)u1"),
        np.dtype("i1,f8,i2", align=True),
        np.dtype("i1,f8"),
        np.dtype({"names": ["a", "b"], "formats": ["i4", "(2,)f4"], "offsets": [8, 0]}),
        np.dtype([("f0", "i1,f8"), ("f1", "2i4")]),
    ],
    ids=str,
)
def test_numpy_types_there_and_back(dtype: np.dtype[Any]) -> None:
    datatype = from_numpy_dtype(dtype).Commit()
    assert datatype.extent == dtype.itemsize
    back = to_numpy_dtype(datatype)
    assert back.itemsize == dtype.itemsize
    if dtype.names is None:
        assert back == dtype
    else:
        assert back.isalignedstruct >= dtype.isalignedstruct
        offsets = [field[1] for field in dtype.fields.values()]
        assert [field[1] for field in back.fields.values()] == offsets
    datatype.Free()


def test_numpy_types_of_others() -> None:
    assert to_numpy_dtype(MPI.DOUBLE_INT) == np.dtype("f8,i4", align=True)
    assert to_numpy_dtype(MPI.INT.Create_vector(2, 3, 4)).itemsize == 28
    assert to_numpy_dtype(MPI.INT.Create_indexed([1, 2], [1, 3])).itemsize == 20
    for datatype in (
        NULL,
        MPI.INT.Create_resized(0, 32),
        MPI.INT.Create_subarray([2], [1], [0]),
        MPI.BFLOAT16_T,
    ):
        with pytest.raises(ValueError):
            to_numpy_dtype(datatype)
    for dtype in ("O", ">i4", "V3"):
        with pytest.raises(ValueError):
            from_numpy_dtype(dtype)
