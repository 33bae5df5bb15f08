"""Which datatype the items of a buffer have."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.predefined import by_code

FOREIGN = ">" if sys.byteorder == "little" else "<"

_plain: dict[Any, Datatype | None] = {}


def datatype_of_items(format: str) -> Datatype:
    """The datatype for a format of PEP 3118.

    Raises:
        BufferError: its bytes are in another order than this machine's.
        KeyError: there is none.
    """
    if format.startswith(FOREIGN):
        raise BufferError(
            f"items of format {format!r} are not in this machine's byte order: give the datatype "
            "([data, datatype]) to send them as they are"
        )
    return by_code(format.lstrip("@=<>"))


def plain_datatype(dtype: np.dtype[Any]) -> Datatype | None:
    """The datatype of an array's items; None if there is none, or it takes a closer look."""
    # long and long long are equal for NumPy, and have datatypes of their own.
    key = dtype.char if dtype.isbuiltin == 1 else dtype
    try:
        return _plain[key]
    except KeyError:
        pass
    try:
        datatype = datatype_of_items(np.empty(0, dtype).data.format)
    except (KeyError, ValueError, BufferError):
        datatype = None
    _plain[key] = datatype
    return datatype
