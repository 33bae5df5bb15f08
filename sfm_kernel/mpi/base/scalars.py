"""Numbers that C takes as an int."""

from __future__ import annotations

import operator
from typing import Any


def scalar(value: Any) -> int:
    """A rank, tag, root, color or key. What is no whole number is cut, as mpi4py does.

    Programs rely on that: ``dest=size / 2``, with an even size, is a rank.

    Raises:
        TypeError: it is no number.
    """
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, str | bytes | bytearray) or not hasattr(value, "__int__"):
            raise
        return int(value)
