"""What a reduction does with two values.

An operation is any function of two values. It must be associative: ``op(op(a, b), c)`` equals
``op(a, op(b, c))``, up to rounding. Values are combined in the order of the members, so that it
need not be commutative. NumPy's ufuncs (``numpy.add``, ``numpy.maximum``) work on arrays element by
element, in place; Python's own ``operator.add`` and ``mul``, ``min`` and ``max`` do the same where
the values are arrays.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import Operation

if TYPE_CHECKING:
    from numpy.typing import NDArray

Op = Callable[[Any, Any], Any]

NATIVE: dict[Op, int] = {
    operator.add: Operation.ADD,
    operator.mul: Operation.MULTIPLY,
    min: Operation.MIN,
    max: Operation.MAX,
}
"""Operations that the native core does on numbers, and their codes; all others are ``OTHER``."""

PLAIN = frozenset("?bhilqBHILQefdFD")
"""NumPy's characters for the types of numbers that the native core knows."""


@cache
def _ufuncs() -> dict[Op, Op]:
    import numpy as np

    return {operator.add: np.add, operator.mul: np.multiply, min: np.minimum, max: np.maximum}


@cache
def native_codes() -> dict[Op, int]:
    """As ``NATIVE``, with NumPy's ufuncs. Only called where there are arrays."""
    import numpy as np

    return {
        np.add: Operation.ADD,
        np.multiply: Operation.MULTIPLY,
        np.minimum: Operation.MINIMUM,
        np.maximum: Operation.MAXIMUM,
    }


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array, and none of its subclasses, which may mean other things."""
    numpy = sys.modules.get("numpy")  # who has an array has imported it
    return numpy is not None and type(value) is numpy.ndarray


def is_plain(array: Any) -> bool:
    """Whether its items are numbers that the native core has a name for (packet/arrays.rs)."""
    return array.dtype.char in PLAIN and bool(array.dtype.isnative)


def for_arrays(op: Op) -> Op:
    """The same operation, element by element."""
    return _ufuncs().get(op, op)


def is_elementwise(op: Op) -> bool:
    """Whether it is a ufunc of two arguments: it may then be applied to parts of arrays."""
    return getattr(op, "nin", None) == 2 and hasattr(op, "reduceat")


COMMUTATIVE = frozenset(
    ["add", "multiply", "minimum", "maximum", "fmin", "fmax", "gcd", "lcm", "hypot", "logaddexp"]
    + [f"{kind}_{what}" for kind in ("logical", "bitwise") for what in ("and", "or", "xor")]
)
"""Ufuncs of NumPy that give the same whatever comes first, up to rounding."""


def is_commutative(op: Op | None, array: bool) -> bool:
    """Whether the order of the values is known not to matter, on all members alike.

    Not where they are no arrays: what ``operator.add`` adds may be texts, on some of them.
    """
    name = getattr(op, "__name__", "")
    return array and name in COMMUTATIVE and op is getattr(sys.modules["numpy"], name, None)


def name_of(op: Op) -> str:
    """How an operation is called in texts."""
    return str(getattr(op, "__name__", None) or type(op).__name__)


def combine(op: Op, left: Any, right: Any, into: NDArray[Any] | None = None) -> Any:
    """``op(left, right)``; for ufuncs in ``into``, which may be either of them."""
    if into is not None and is_elementwise(op):
        return op(left, right, out=into)  # type: ignore[call-arg]
    return op(left, right)


def put(out: Any, result: Any) -> Any:
    """The result in the array that is to have it."""
    import numpy as np

    np.copyto(out, result, casting="same_kind")
    return out


def check_out(out: Any, value: Any, array: bool) -> None:
    """Raise ValueError for what cannot take a result of the value's shape and type."""
    fits = array and is_array(out) and out.shape == value.shape and out.dtype == value.dtype
    if not fits or not out.flags.writeable or not out.flags.c_contiguous:
        raise ValueError(
            "out is a writable C-contiguous array of the value's shape and type, for values that "
            "are arrays"
        )


def by(rest: str, algorithm: str) -> str:
    """What must be equal on all members, and the algorithm with it."""
    return f"{rest}, by {algorithm}" if rest else f"by {algorithm}"
