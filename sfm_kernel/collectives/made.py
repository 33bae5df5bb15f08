"""A collective call as it was made, in words."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from sfm_kernel._native import location_words

Made = tuple[Any, ...]
"""A call as it was made: its name; its other arguments that must be equal; for arrays their type
and shape."""

Placed = Sequence[str]
"""A call in words, and its line of the program, as ``in_line`` has it."""


def describe(call: str, rest: str, dtype: Any = None, shape: Any = None) -> str:
    """The call in words."""
    array = "" if dtype is None else f"{dtype}{list(shape)}"
    return f"{call}({', '.join(filter(None, (array, rest)))})"


in_line = functools.lru_cache(1024)(location_words)
"""The line of a location: " in prog.py, line 7 (step)"."""
