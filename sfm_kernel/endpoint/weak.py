"""Lists of objects that are held weakly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def listed(objects: Callable[[], Iterable[T]]) -> list[T]:
    """The objects of a weak set or dictionary, which ``objects()`` gives, while others are added.

    Iterating one of these runs Python code, in which another thread may go on and add one: that
    raises RuntimeError, and the objects are asked for again.
    """
    while True:
        try:
            return list(objects())
        except RuntimeError:
            continue
