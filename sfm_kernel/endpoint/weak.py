"""Lists of objects that are held weakly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def listed(weak: Iterable[T]) -> list[T]:
    """The objects of a weak set, or the values of a weak dictionary, while other threads add some.

    ``list`` of these runs Python code, in which another thread may go on: it raises RuntimeError
    then.
    """
    while True:
        try:
            return list(weak)
        except RuntimeError:
            continue
