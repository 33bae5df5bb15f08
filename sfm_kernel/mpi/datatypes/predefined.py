"""The datatypes of MPI, and which of them the codes of PEP 3118 and NumPy mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.named import NAMED


def _constant(name: str) -> Datatype:
    return Datatype._constant(name, NAMED[name])


DATATYPE_NULL = Datatype._constant("DATATYPE_NULL")

# Of MPI itself.
PACKED = _constant("PACKED")
BYTE = _constant("BYTE")
AINT = _constant("AINT")
OFFSET = _constant("OFFSET")
COUNT = _constant("COUNT")

# Of C.
CHAR = _constant("CHAR")
WCHAR = _constant("WCHAR")
SIGNED_CHAR = _constant("SIGNED_CHAR")
SHORT = _constant("SHORT")
INT = _constant("INT")
LONG = _constant("LONG")
LONG_LONG = _constant("LONG_LONG")
UNSIGNED_CHAR = _constant("UNSIGNED_CHAR")
UNSIGNED_SHORT = _constant("UNSIGNED_SHORT")
UNSIGNED = _constant("UNSIGNED")
UNSIGNED_LONG = _constant("UNSIGNED_LONG")
UNSIGNED_LONG_LONG = _constant("UNSIGNED_LONG_LONG")
FLOAT = _constant("FLOAT")
DOUBLE = _constant("DOUBLE")
LONG_DOUBLE = _constant("LONG_DOUBLE")
C_BOOL = _constant("C_BOOL")
INT8_T = _constant("INT8_T")
INT16_T = _constant("INT16_T")
INT32_T = _constant("INT32_T")
INT64_T = _constant("INT64_T")
UINT8_T = _constant("UINT8_T")
UINT16_T = _constant("UINT16_T")
UINT32_T = _constant("UINT32_T")
UINT64_T = _constant("UINT64_T")
FLOAT16_T = _constant("FLOAT16_T")
FLOAT32_T = FLOAT
FLOAT64_T = DOUBLE
BFLOAT16_T = _constant("BFLOAT16_T")
C_FLOAT_COMPLEX = _constant("C_FLOAT_COMPLEX")
C_COMPLEX = C_FLOAT_COMPLEX
C_DOUBLE_COMPLEX = _constant("C_DOUBLE_COMPLEX")
C_LONG_DOUBLE_COMPLEX = _constant("C_LONG_DOUBLE_COMPLEX")

# Of C++.
CXX_BOOL = _constant("CXX_BOOL")
CXX_FLOAT_COMPLEX = _constant("CXX_FLOAT_COMPLEX")
CXX_DOUBLE_COMPLEX = _constant("CXX_DOUBLE_COMPLEX")
CXX_LONG_DOUBLE_COMPLEX = _constant("CXX_LONG_DOUBLE_COMPLEX")

# Pairs for MINLOC and MAXLOC.
SHORT_INT = _constant("SHORT_INT")
INT_INT = TWOINT = _constant("INT_INT")
LONG_INT = _constant("LONG_INT")
FLOAT_INT = _constant("FLOAT_INT")
DOUBLE_INT = _constant("DOUBLE_INT")
LONG_DOUBLE_INT = _constant("LONG_DOUBLE_INT")

# Of Fortran.
CHARACTER = _constant("CHARACTER")
LOGICAL = _constant("LOGICAL")
INTEGER = _constant("INTEGER")
REAL = _constant("REAL")
DOUBLE_PRECISION = _constant("DOUBLE_PRECISION")
COMPLEX = _constant("COMPLEX")
DOUBLE_COMPLEX = _constant("DOUBLE_COMPLEX")
LOGICAL1 = _constant("LOGICAL1")
LOGICAL2 = _constant("LOGICAL2")
LOGICAL4 = _constant("LOGICAL4")
LOGICAL8 = _constant("LOGICAL8")
LOGICAL16 = _constant("LOGICAL16")
INTEGER1 = _constant("INTEGER1")
INTEGER2 = _constant("INTEGER2")
INTEGER4 = _constant("INTEGER4")
INTEGER8 = _constant("INTEGER8")
INTEGER16 = _constant("INTEGER16")
REAL2 = _constant("REAL2")
REAL4 = _constant("REAL4")
REAL8 = _constant("REAL8")
REAL16 = _constant("REAL16")
COMPLEX4 = _constant("COMPLEX4")
COMPLEX8 = _constant("COMPLEX8")
COMPLEX16 = _constant("COMPLEX16")
COMPLEX32 = _constant("COMPLEX32")

# Other names.
UNSIGNED_INT = UNSIGNED
SIGNED_SHORT = SHORT
SIGNED_INT = INT
SIGNED_LONG = LONG
SIGNED_LONG_LONG = LONG_LONG
BOOL = C_BOOL
SINT8_T = INT8_T
SINT16_T = INT16_T
SINT32_T = INT32_T
SINT64_T = INT64_T
F_BOOL = LOGICAL
F_INT = INTEGER
F_FLOAT = REAL
F_DOUBLE = DOUBLE_PRECISION
F_COMPLEX = F_FLOAT_COMPLEX = COMPLEX
F_DOUBLE_COMPLEX = DOUBLE_COMPLEX

_OF_C = {
    "?": C_BOOL,
    "b": SIGNED_CHAR,
    "h": SHORT,
    "i": INT,
    "l": LONG,
    "q": LONG_LONG,
    "B": UNSIGNED_CHAR,
    "H": UNSIGNED_SHORT,
    "I": UNSIGNED,
    "L": UNSIGNED_LONG,
    "Q": UNSIGNED_LONG_LONG,
    "f": FLOAT,
    "d": DOUBLE,
    "g": LONG_DOUBLE,
    "F": C_FLOAT_COMPLEX,
    "D": C_DOUBLE_COMPLEX,
    "G": C_LONG_DOUBLE_COMPLEX,
}
_OF_SIZE = {
    one.typestr: one
    for one in (
        *(C_BOOL, INT8_T, INT16_T, INT32_T, INT64_T, UINT8_T, UINT16_T, UINT32_T, UINT64_T),
        *(FLOAT16_T, FLOAT, DOUBLE, LONG_DOUBLE),
        *(C_FLOAT_COMPLEX, C_DOUBLE_COMPLEX, C_LONG_DOUBLE_COMPLEX),
    )
}

_typedict_c: dict[str, Datatype] = _OF_C | _OF_SIZE
"""The types of C by their codes."""

_typedict_f: dict[str, Datatype] = {
    "l": LOGICAL,
    "i": INTEGER,
    "r": REAL,
    "s": REAL,
    "d": DOUBLE_PRECISION,
    "c": COMPLEX,
    "z": DOUBLE_COMPLEX,
    **{f"l{one.size}": one for one in (LOGICAL1, LOGICAL2, LOGICAL4, LOGICAL8, LOGICAL16)},
    **{f"i{one.size}": one for one in (INTEGER1, INTEGER2, INTEGER4, INTEGER8, INTEGER16)},
    **{f"r{one.size}": one for one in (REAL2, REAL4, REAL8, REAL16)},
    **{f"c{one.size}": one for one in (COMPLEX4, COMPLEX8, COMPLEX16, COMPLEX32)},
}
"""The types of Fortran by their codes."""

_typedict: dict[str, Datatype] = {
    **_typedict_c,
    "e": FLOAT16_T,
    "i16": INTEGER16,
    "c4": COMPLEX4,
    **dict.fromkeys(("E", "Ze"), COMPLEX4),
    "Zf": C_FLOAT_COMPLEX,
    "Zd": C_DOUBLE_COMPLEX,
    "Zg": C_LONG_DOUBLE_COMPLEX,
    "n": COUNT,
    "N": UNSIGNED_LONG,
    "p": AINT,
    "P": UNSIGNED_LONG,
    **dict.fromkeys(("c", "a", "S", "S1", "s", "1s"), CHAR),
    **dict.fromkeys(("U", "U1", "w", "1w"), WCHAR),
    **dict.fromkeys(("u", "1u"), UINT16_T),
    **dict.fromkeys(("M", "M8", "m", "m8"), INT64_T),
}
"""The types by the codes of PEP 3118 and NumPy."""


def by_code(code: str | np.dtype[Any]) -> Datatype:
    """The datatype of a code (PEP 3118, NumPy), or of a NumPy type.

    Raises:
        KeyError: there is none.
    """
    if isinstance(code, np.dtype):
        plain = code.isnative and code.kind in "biufcmM"
        code = code.char if plain else code.str.lstrip("|=<") if code.isnative else code.str
    try:
        return _typedict[code]
    except KeyError:
        raise KeyError(f"no MPI datatype has the code {code!r}") from None
