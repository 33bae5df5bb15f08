"""The operations of MPI.

Where NumPy has the same, ``on_arrays`` gives NumPy's ufunc, so that the native collectives do it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sfm_kernel.mpi.ops.op import Op, Operation, undefined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sfm_kernel.mpi.datatypes.datatype import Datatype
    from sfm_kernel.mpi.ops.op import OnArrays

INTEGERS = frozenset({"integer", "address"})
REALS = INTEGERS | {"floating"}
NUMBERS = REALS | {"complex"}
BITS = INTEGERS | {"byte"}
LOGICALS = INTEGERS | {"logical"}
PAIRS = frozenset({"pair"})
NONE: frozenset[str] = frozenset()


class Predefined(Operation):
    """An operation of MPI.

    Args:
        python: it, on objects.
        arrays: it, on arrays.
        kinds: the kinds of basic types that it is defined for.
    """

    def __init__(
        self,
        name: str,
        python: Callable[[Any, Any], Any],
        arrays: OnArrays,
        kinds: frozenset[str],
        commute: bool = True,
    ) -> None:
        self.name, self.python, self.commute = name, python, commute
        self._arrays, self._kinds = arrays, kinds

    def on_arrays(self, datatype: Datatype) -> OnArrays:
        basic = datatype._live.stands_for
        if basic is None:
            undefined(self, datatype, "give elements of a predefined type, or use Op.Create")
        if basic.kind not in self._kinds:
            known = ", ".join(sorted(self._kinds)) or "one-sided communication only"
            undefined(self, datatype, f"these are {basic.kind}, and it is for {known}")
        return self._arrays


def _logical(function: OnArrays) -> OnArrays:
    """The function gives truth values; as elements of the same type they are 0 and 1."""

    def of_arrays(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        return function(a, b).astype(b.dtype, copy=False)

    of_arrays.__name__ = getattr(function, "__name__", "logical")
    return of_arrays


def _located(is_better: Callable[[Any, Any], Any]) -> tuple[Callable[[Any, Any], Any], OnArrays]:
    """Of pairs of a value and its place: the better value, and the first place of it."""

    def of_objects(x: Any, y: Any) -> Any:
        (u, i), (v, j) = x, y
        if is_better(u, v):
            return u, i
        if is_better(v, u) or j < i:
            return v, j
        return u, i

    def of_arrays(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        value, place = b.dtype.names or ("", "")
        u, v = a[value], b[value]
        first = is_better(u, v) | (~is_better(v, u) & (a[place] <= b[place]))
        result = b.copy()
        result[first] = a[first]
        return result

    of_objects.__name__ = of_arrays.__name__ = f"{is_better.__name__}_loc"
    return of_objects, of_arrays


def _and(x: Any, y: Any) -> bool:
    return bool(x) & bool(y)


def _or(x: Any, y: Any) -> bool:
    return bool(x) | bool(y)


def _xor(x: Any, y: Any) -> bool:
    return bool(x) ^ bool(y)


def _first(x: Any, y: Any) -> Any:
    return x


def _second(x: Any, y: Any) -> Any:
    return y


def _constant(name: str, *what: Any) -> Op:
    return Op._constant(name, Predefined(name, *what))


OP_NULL = Op._constant("OP_NULL")
MAX = _constant("MAX", max, np.maximum, REALS)
MIN = _constant("MIN", min, np.minimum, REALS)
SUM = _constant("SUM", operator.add, np.add, NUMBERS)
PROD = _constant("PROD", operator.mul, np.multiply, NUMBERS)
LAND = _constant("LAND", _and, _logical(np.logical_and), LOGICALS)
BAND = _constant("BAND", operator.and_, np.bitwise_and, BITS)
LOR = _constant("LOR", _or, _logical(np.logical_or), LOGICALS)
BOR = _constant("BOR", operator.or_, np.bitwise_or, BITS)
LXOR = _constant("LXOR", _xor, _logical(np.logical_xor), LOGICALS)
BXOR = _constant("BXOR", operator.xor, np.bitwise_xor, BITS)
MAXLOC = _constant("MAXLOC", *_located(operator.gt), PAIRS)
MINLOC = _constant("MINLOC", *_located(operator.lt), PAIRS)
REPLACE = _constant("REPLACE", _second, _second, NONE, False)
NO_OP = _constant("NO_OP", _first, _first, NONE, False)
