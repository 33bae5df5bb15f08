"""The operations of reductions.

An operation is any function of two values. It must be associative: ``op(op(a, b), c)`` equals
``op(a, op(b, c))``, up to rounding. Values are combined in the order of ranks, so that it need not
be commutative. NumPy's ufuncs (``numpy.add``, ``numpy.maximum``) work on arrays element by element,
in place; Python's ``operator.add`` and ``mul``, ``min`` and ``max`` do the same for arrays.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from sfm_kernel._native import Operation

Op = Callable[[Any, Any], Any]

NATIVE: dict[Op, int] = {
    operator.add: Operation.ADD,
    operator.mul: Operation.MULTIPLY,
    min: Operation.MIN,
    max: Operation.MAX,
}
"""The native core's operations on numbers, and their codes; all others are ``OTHER``."""

PLAIN = frozenset("?bhilqBHILQefdFD")
"""NumPy's type characters of the numbers that the native core knows."""


@cache
def _ufuncs() -> dict[Op, Op]:
    import numpy as np

    return {operator.add: np.add, operator.mul: np.multiply, min: np.minimum, max: np.maximum}


@cache
def native_codes() -> dict[Op, int]:
    """As ``NATIVE``, for NumPy's ufuncs. Only called for arrays."""
    import numpy as np

    return {
        np.add: Operation.ADD,
        np.multiply: Operation.MULTIPLY,
        np.minimum: Operation.MINIMUM,
        np.maximum: Operation.MAXIMUM,
    }


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array; subclasses, whose operations may differ, do not count."""
    numpy = sys.modules.get("numpy")  # a program with arrays has imported it
    return numpy is not None and type(value) is numpy.ndarray


def is_plain(array: Any) -> bool:
    """Whether the array's items are numbers that the native core knows (packet/arrays.rs)."""
    return array.dtype.char in PLAIN and bool(array.dtype.isnative)


def for_arrays(op: Op) -> Op:
    """The operation for arrays, element by element."""
    return _ufuncs().get(op, op)


def is_elementwise(op: Op) -> bool:
    """Whether the operation is a ufunc of two arguments, which applies to chunks of arrays too."""
    return getattr(op, "nin", None) == 2 and hasattr(op, "reduceat")


COMMUTATIVE = frozenset(
    ["add", "multiply", "minimum", "maximum", "fmin", "fmax", "gcd", "lcm", "hypot", "logaddexp"]
    + [f"{kind}_{name}" for kind in ("logical", "bitwise") for name in ("and", "or", "xor")]
)
"""NumPy's commutative ufuncs (up to rounding)."""


def is_commutative(op: Op | None, array: bool) -> bool:
    """Whether the order of the values is known not to matter; the same on all members.

    False for other values than arrays: ``operator.add`` may add texts on some members.
    """
    name = getattr(op, "__name__", "")
    return array and name in COMMUTATIVE and op is getattr(sys.modules["numpy"], name, None)


def name_of(op: Op) -> str:
    """The name of an operation, for texts."""
    return str(getattr(op, "__name__", None) or type(op).__name__)


def put(out: Any, result: Any) -> Any:
    """Copy the result to the array ``out``, and return that."""
    import numpy as np

    np.copyto(out, result, casting="same_kind")
    return out


def check_out(out: Any, value: Any, array: bool) -> None:
    """Raise ValueError if ``out`` cannot take a result of the value's shape and type."""
    fits = array and is_array(out) and out.shape == value.shape and out.dtype == value.dtype
    if not fits or not out.flags.writeable or not out.flags.c_contiguous:
        raise ValueError(
            "out must be a writable C-contiguous array of the value's shape and type, and the "
            "value an array"
        )


def by(rest: str, algorithm: str) -> str:
    """Add the algorithm to the text of the arguments, which must be equal on all members."""
    return f"{rest}, by {algorithm}" if rest else f"by {algorithm}"
