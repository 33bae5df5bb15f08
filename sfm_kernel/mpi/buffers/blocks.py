"""Blocks: the buffers of a call that sends to, or receives from, several processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from sfm_kernel.mpi.buffers.elements import Elements


class Blocks(Sequence[Elements]):
    """Elements for each of several processes, in their order.

    Attributes:
        whole: all of them as one, if each begins where the one before it ends; else None.
    """

    __slots__ = ("_parts", "whole")

    def __init__(self, parts: Sequence[Elements], whole: Elements | None = None) -> None:
        self._parts, self.whole = parts, whole

    @classmethod
    def equal(cls, whole: Elements, blocks: int, count: int) -> Blocks:
        """Blocks of *count* elements each."""
        return cls([whole.part(block * count, count) for block in range(blocks)], whole)

    @classmethod
    def of(cls, whole: Elements, counts: Sequence[int]) -> Blocks:
        """Blocks of these counts, one after the other."""
        parts, first = [], 0
        for count in counts:
            parts.append(whole.part(first, count))
            first += count
        return cls(parts, whole)

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, item: int) -> Elements: ...
    @overload
    def __getitem__(self, item: slice) -> Sequence[Elements]: ...
    def __getitem__(self, item: int | slice) -> Elements | Sequence[Elements]:
        return self._parts[item]

    def __iter__(self) -> Iterator[Elements]:
        return iter(self._parts)

    def __repr__(self) -> str:
        return f"<{len(self)} blocks: {list(self._parts)}>"
