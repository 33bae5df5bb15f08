"""Arguments of datatype calls: whole numbers, one or several."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfm_kernel.mpi.base.constants import ERR_COUNT
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.datatypes.pieces import Offsets


def whole(value: Any) -> int:
    """A number; the fraction of a ``float`` is cut off, as mpi4py does."""
    return int(value) if isinstance(value, float) else operator.index(value)


def count(value: Any, what: str = "count") -> int:
    """A number that is not negative."""
    number = whole(value)
    if number < 0:
        fail(ERR_COUNT, f"the {what} is {number}: it must not be negative")
    return number


def wholes(values: Sequence[int], size: int | None = None) -> Offsets:
    """Several numbers, ``size`` of them if it is given.

    Raises:
        ValueError: there are more or fewer.
        TypeError: they are no whole numbers.
    """
    given = len(values)
    if size is not None and given != size:
        raise ValueError(f"{size} numbers are needed, not {given}")
    found: Any = np.asarray(values) if given else np.empty(0, np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iub":
        found = [operator.index(value) for value in values]
    return np.asarray(found, np.int64)


def counts(values: Sequence[int], what: str, size: int | None = None) -> Offsets:
    """Several numbers that are not negative."""
    found = wholes(values, size)
    if len(found) and found.min() < 0:
        fail(ERR_COUNT, f"one of the {what} is {found.min()}: they must not be negative")
    return found
