"""The datatypes that MPI names, and those that are asked for by size or precision."""

from __future__ import annotations

from sfm_kernel.mpi.base import constants as c
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.datatypes import layout
from sfm_kernel.mpi.datatypes.arguments import whole
from sfm_kernel.mpi.datatypes.basics import Basic, Kind, foreign, integer, number, pair
from sfm_kernel.mpi.datatypes.state import Making, TypeState

NAMED: dict[str, TypeState] = {}
"""By the name that they have in the module MPI."""

SPECIAL_NAMES = {
    "LONG_LONG": "MPI_LONG_LONG_INT",
    "INT_INT": "MPI_2INT",
    "C_FLOAT_COMPLEX": "MPI_C_COMPLEX",
    "FLOAT16_T": "MPIX_C_FLOAT16",
    "BFLOAT16_T": "MPIX_BFLOAT16",
}
"""What MPICH calls those whose name is not MPI_ and their name in the module."""


PAIRED = ("SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "LONG_DOUBLE")
"""Values that have a pair type; the index is an INT."""


def _name(name: str, basic: Basic) -> TypeState:
    NAMED[name] = state = TypeState(
        layout.basic(basic),
        Making(c.COMBINER_NAMED),
        stands_for=basic,
        committed=True,
        name=SPECIAL_NAMES.get(name, f"MPI_{name}"),
    )
    return state


def _names(names: str, kind: Kind, chars: str, external: str = "") -> None:
    for name, char in zip(names.split(), chars, strict=True):
        _name(name, number(char, kind, external=external))


_names("PACKED", "packed", "B")
_names("BYTE", "byte", "B")
_names("AINT OFFSET COUNT", "address", "ppp")

_names("CHAR CHARACTER", "character", "cc")
_names("WCHAR", "character", "U", external=">u2")
_names("SIGNED_CHAR SHORT INT LONG_LONG", "integer", "bhiq")
_names("UNSIGNED_CHAR UNSIGNED_SHORT UNSIGNED UNSIGNED_LONG_LONG", "integer", "BHIQ")
_names("LONG", "integer", "l", external=">i4")
_names("UNSIGNED_LONG", "integer", "L", external=">u4")
_names("FLOAT16_T FLOAT DOUBLE LONG_DOUBLE", "floating", "efdg")
_names("C_FLOAT_COMPLEX C_DOUBLE_COMPLEX C_LONG_DOUBLE_COMPLEX", "complex", "FDG")
_name("BFLOAT16_T", foreign("u2", "floating", "V", "V2", None))

_name("C_BOOL", number("?", "logical", exact=True))
for _size in (1, 2, 4, 8):
    _name(f"INT{8 * _size}_T", integer(_size))
    _name(f"UINT{8 * _size}_T", integer(_size, signed=False))

_names("CXX_BOOL", "logical", "?")
_names("CXX_FLOAT_COMPLEX CXX_DOUBLE_COMPLEX CXX_LONG_DOUBLE_COMPLEX", "complex", "FDG")

_names("LOGICAL", "logical", "i")
_names("INTEGER", "integer", "i")
_names("REAL DOUBLE_PRECISION", "floating", "fd")
_names("COMPLEX DOUBLE_COMPLEX", "complex", "FD")


def _part(name: str) -> Basic:
    basic = NAMED[name].basic
    assert basic is not None
    return basic


PAIRS = {
    (NAMED[name], NAMED["INT"]): _name(f"{name}_INT", pair(_part(name), _part("INT")))
    for name in PAIRED
}
"""By the types of value and index."""

_halves = foreign("e,e", "complex", "E", "c4", "c4")
BY_SIZE = {
    c.TYPECLASS_LOGICAL: {
        1: _name("LOGICAL1", number("?", "logical", exact=True)),
        **{n: _name(f"LOGICAL{n}", integer(n, "logical")) for n in (2, 4, 8, 16)},
    },
    c.TYPECLASS_INTEGER: {n: _name(f"INTEGER{n}", integer(n)) for n in (1, 2, 4, 8, 16)},
    c.TYPECLASS_REAL: {
        n: _name(f"REAL{n}", number(char, "floating", exact=True))
        for n, char in ((2, "e"), (4, "f"), (8, "d"), (16, "g"))
    },
    c.TYPECLASS_COMPLEX: {
        4: _name("COMPLEX4", _halves),
        **{
            n: _name(f"COMPLEX{n}", number(char, "complex", exact=True))
            for n, char in ((8, "F"), (16, "D"), (32, "G"))
        },
    },
}
"""Fortran's types by their class, and by how many bytes they have."""

DIGITS = ((2, 1), (4, 2), (9, 4), (18, 8), (38, 16))
"""How many decimal digits integers hold, and how many bytes they have."""

PRECISIONS = ((3, 4, 2), (6, 37, 4), (15, 307, 8), (33, 4931, 16))
"""How many digits floating-point numbers hold, to which power of ten; and how many bytes."""

_asked_for: dict[tuple[int, ...], TypeState] = {}


def match_size(typeclass: int, size: int) -> TypeState:
    sizes = BY_SIZE.get(typeclass)
    if sizes is None:
        fail(c.ERR_ARG, f"{typeclass} is no class of types: give one of TYPECLASS_...")
    if size not in sizes:
        fail(c.ERR_ARG, f"no type of this class has {size} bytes: there are {[*sizes]}")
    return sizes[size]


def value_index(value: TypeState, index: TypeState) -> TypeState | None:
    """The pair type; None if there is none of these."""
    return PAIRS.get((value, index))


def f90_integer(r: int) -> TypeState:
    r = whole(r)
    nbytes = next((nbytes for digits, nbytes in DIGITS if r <= digits), 0)
    if not nbytes:
        fail(c.ERR_ARG, f"no integer holds {r} digits: the largest holds {DIGITS[-1][0]}")
    return _f90(c.COMBINER_F90_INTEGER, BY_SIZE[c.TYPECLASS_INTEGER][nbytes], r=r)


def f90_real(p: int, r: int) -> TypeState:
    real = BY_SIZE[c.TYPECLASS_REAL][_precision(p, r)]
    return _f90(c.COMBINER_F90_REAL, real, p=whole(p), r=whole(r))


def f90_complex(p: int, r: int) -> TypeState:
    both = BY_SIZE[c.TYPECLASS_COMPLEX][2 * _precision(p, r)]
    return _f90(c.COMBINER_F90_COMPLEX, both, p=whole(p), r=whole(r))


def _precision(p: int, r: int) -> int:
    """How many bytes a number of this precision and range needs; UNDEFINED asks for nothing."""
    fitting = (n for digits, power, n in PRECISIONS if whole(p) <= digits and whole(r) <= power)
    nbytes = next(fitting, 0)
    if not nbytes:
        digits, power, _ = PRECISIONS[-1]
        fail(
            c.ERR_ARG,
            f"no number has {p} digits and reaches 10**{r}: the largest has {digits} and reaches "
            f"10**{power}",
        )
    return nbytes


def _f90(combiner: int, same: TypeState, **arguments: int) -> TypeState:
    """The one type for these arguments."""
    key = (combiner, *arguments.values())
    if key not in _asked_for:
        _asked_for[key] = TypeState(
            same.layout, Making(combiner, dict(arguments)), stands_for=same.basic, committed=True
        )
    return _asked_for[key]
