"""What data consist of: the basic types, each with its layout in C and in external32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Kind = Literal[
    "integer",  # of C or Fortran
    "floating",
    "complex",
    "logical",
    "byte",
    "address",  # AINT, OFFSET, COUNT: integers for reductions
    "character",
    "packed",
    "pair",  # of a value and an index, for MINLOC and MAXLOC
]

Scalar = tuple[np.dtype[Any], np.dtype[Any]]
"""How a number is stored here and in external32."""

OPAQUE = np.dtype("V16")
"""A number of 16 bytes that NumPy does not have: an integer, or IEEE's floating-point number."""


@dataclass(frozen=True, eq=False, slots=True)
class Basic:
    """A type without parts, or a pair.

    Attributes:
        nbytes: what its values take when packed.
        extent: from one value to the next in memory.
        align: of which number of bytes its address is a multiple in C.
        kind: which operations it has.
        dtype: the NumPy type of packed values; None where NumPy has none.
        char, string, code: what ``typechar``, ``typestr`` and ``tocode`` say; no code of pairs.
        scalars: the numbers that it consists of: two for complex types and pairs.
        members: the sizes of the parts that ``Get_elements`` counts.
    """

    nbytes: int
    extent: int
    align: int
    kind: Kind
    dtype: np.dtype[Any] | None
    char: str
    string: str
    code: str | None
    scalars: tuple[Scalar, ...]
    members: tuple[int, ...]

    @property
    def external(self) -> int:
        """How many bytes a value takes in external32."""
        return sum(canonical.itemsize for _, canonical in self.scalars)


def number(char: str, kind: Kind, *, exact: bool = False, external: str = "") -> Basic:
    """A number or character that NumPy has.

    Args:
        char: its code, in NumPy and in MPI.
        exact: its code says how many bytes it has (``"i4"``, not ``"i"``).
        external: how external32 stores it, where that is not the same in big-endian order.
    """
    dtype = np.dtype({"c": "S1", "U": "U1"}.get(char, char))
    part = np.dtype("u4") if char == "U" else np.dtype(char.lower()) if char in "FDG" else dtype
    if part.kind == "f" and np.finfo(part).nmant == 63:
        external = OPAQUE.char + str(OPAQUE.itemsize)
    canonical = np.dtype(external) if external else part.newbyteorder(">")
    string = dtype.str[1:]
    return Basic(
        nbytes=dtype.itemsize,
        extent=dtype.itemsize,
        align=dtype.alignment,
        kind=kind,
        dtype=dtype,
        char=char,
        string=string,
        code=string if exact else char,
        scalars=((part, canonical),) * (dtype.itemsize // part.itemsize),
        members=(dtype.itemsize,),
    )


def foreign(parts: str, kind: Kind, char: str, string: str, code: str | None) -> Basic:
    """A number that NumPy does not have: one or more parts that it has (``"e,e"``), or OPAQUE."""
    natives = [np.dtype(part) for part in parts.split(",")]
    nbytes = sum(native.itemsize for native in natives)
    return Basic(
        nbytes=nbytes,
        extent=nbytes,
        align=natives[0].itemsize,
        kind=kind,
        dtype=None,
        char=char,
        string=string,
        code=code,
        scalars=tuple((native, native.newbyteorder(">")) for native in natives),
        members=(nbytes,),
    )


def integer(nbytes: int, kind: Kind = "integer", *, signed: bool = True) -> Basic:
    """The integer of C with so many bytes; with 16, the one that only Fortran has."""
    if nbytes == OPAQUE.itemsize:
        return foreign(OPAQUE.str, kind, "V", "i16", "i16")
    chars = "bhilq" if signed else "BHILQ"
    char = next(char for char in chars if np.dtype(char).itemsize == nbytes)
    return number(char, kind, exact=True)


def pair(value: Basic, index: Basic) -> Basic:
    """A C struct of two. Packed, and in its dtype, they are without the struct's gaps."""
    align = max(value.align, index.align)
    extent = -(-(value.nbytes + index.nbytes) // align) * align
    return Basic(
        nbytes=value.nbytes + index.nbytes,
        extent=extent,
        align=align,
        kind="pair",
        dtype=np.dtype([("value", value.dtype), ("index", index.dtype)]),
        char="V",
        string=f"V{extent}",
        code=None,
        scalars=value.scalars + index.scalars,
        members=value.members + index.members,
    )
