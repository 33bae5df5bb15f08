"""TypeState: what the handles of one datatype share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfm_kernel.mpi.base import constants as c
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.datatypes import pieces
from sfm_kernel.mpi.datatypes.basics import Basic
from sfm_kernel.mpi.datatypes.layout import Layout
from sfm_kernel.mpi.datatypes.pieces import Bytes


@dataclass(frozen=True, slots=True)
class Making:
    """How a datatype was made: by which constructor, with which arguments, of which others."""

    combiner: int
    arguments: dict[str, Any] = field(default_factory=dict)
    old: tuple[TypeState, ...] = ()

    def integers_and_counts(self) -> tuple[list[int], list[int]]:
        """The arguments as ``Get_contents`` has them."""
        given = {name: as_list(value) for name, value in self.arguments.items()}
        match self.combiner:
            case c.COMBINER_F90_INTEGER | c.COMBINER_F90_REAL | c.COMBINER_F90_COMPLEX:
                return list(given.values()), []
            case c.COMBINER_INDEXED | c.COMBINER_HINDEXED | c.COMBINER_STRUCT:
                lengths = given["blocklengths"]
                return [], [len(lengths), *lengths, *given["displacements"]]
            case c.COMBINER_INDEXED_BLOCK | c.COMBINER_HINDEXED_BLOCK:
                displacements = given["displacements"]
                return [], [len(displacements), given["blocklength"], *displacements]
            case c.COMBINER_SUBARRAY:
                sizes = given["sizes"]
                counts = [*sizes, *given["subsizes"], *given["starts"]]
                return [len(sizes), given["order"]], counts
            case c.COMBINER_DARRAY:
                grid = [*given["distribs"], *given["dargs"], *given["psizes"]]
                sizes = given["gsizes"]
                return [given["size"], given["rank"], len(sizes), *grid, given["order"]], sizes
            case _:
                return [], list(given.values())


class TypeState:
    """A datatype.

    Attributes:
        layout: where its data lie.
        size, lb, extent, true_lb, true_extent: in bytes.
        signature: of which basic types it consists, in order.
        basic: the one that all of them are; None if they differ, or there are none.
        base: the NumPy type of packed data; None if there is not exactly one.
        contiguous: whether data lie as they are packed: elements from the origin on, without gaps.
        making: how it was made.
        stands_for: the basic type that it is, or duplicates.
        committed: whether it may be used in communication.
        references: how many calls of Free are to come.
        attributes, name: for ``Datatype``.
    """

    __slots__ = (
        "__weakref__",
        "attributes",
        "base",
        "basic",
        "committed",
        "contiguous",
        "extent",
        "layout",
        "lb",
        "making",
        "name",
        "references",
        "signature",
        "size",
        "stands_for",
        "true_extent",
        "true_lb",
    )

    def __init__(
        self,
        layout: Layout,
        making: Making,
        *,
        stands_for: Basic | None = None,
        committed: bool = False,
        name: str = "",
    ) -> None:
        self.layout, self.making = layout, making
        self.stands_for, self.committed, self.name = stands_for, committed, name
        self.size, self.lb, self.extent = layout.size, layout.lb, layout.extent
        self.true_lb, self.true_extent = layout.true_lb, layout.true_ub - layout.true_lb
        self.signature = layout.signature
        self.basic = self.signature.only
        self.base = None if self.basic is None else self.basic.dtype
        self.contiguous = layout.contiguous  # native/python/src/memory.rs reads this, too
        self.references = 1
        self.attributes: dict[Any, Any] = {}

    @property
    def is_named(self) -> bool:
        """Whether it has a name in MPI."""
        return self.making.combiner == c.COMBINER_NAMED

    @property
    def is_predefined(self) -> bool:
        """Whether it is named, or one of those that are asked for by precision."""
        return self.making.combiner in (
            c.COMBINER_NAMED,
            c.COMBINER_F90_INTEGER,
            c.COMBINER_F90_REAL,
            c.COMBINER_F90_COMPLEX,
        )

    def pack(self, memory: Bytes, origin: int, start: int, end: int) -> Bytes:
        """The packed bytes *start* to *end* of elements in memory; a view if it is contiguous.

        Args:
            origin: of element 0, in ``memory``; packed byte 0 is its first.
        Raises:
            Exception: ERR_BUFFER: elements that have these bytes are not in ``memory``.
        """
        if self.contiguous:
            self._check(memory, origin + start, origin + end)
            return memory[origin + start : origin + end]
        packed = np.empty(max(0, end - start), np.uint8)
        if packed.size:
            pieces.gather(self.layout.pieces, *self._around(memory, origin, packed, start))
        return packed

    def unpack(self, memory: Bytes, origin: int, data: Bytes, start: int) -> None:
        """Replace the packed bytes from *start* on: the inverse of ``pack``."""
        if self.contiguous:
            self._check(memory, origin + start, origin + start + data.size)
            memory[origin + start : origin + start + data.size] = data
        elif data.size:
            pieces.spread(self.layout.pieces, *self._around(memory, origin, data, start))

    def _around(
        self, memory: Bytes, origin: int, packed: Bytes, start: int
    ) -> tuple[Bytes, int, Bytes, pieces.Dim, int]:
        """The elements that have these packed data."""
        if self.size == 0:
            fail(c.ERR_TRUNCATE, f"there are {packed.size} bytes for elements that have no data")
        first = start // self.size
        number = -(-(start + packed.size) // self.size) - first
        origin += first * self.extent
        last = (number - 1) * self.extent
        low, high = min(0, last) + self.true_lb, max(0, last) + self.true_lb + self.true_extent
        self._check(memory, origin + low, origin + high)
        elements = (number, self.extent, self.size)
        return memory, origin, packed, elements, start - first * self.size

    def _check(self, memory: Bytes, low: int, high: int) -> None:
        if low < high and (low < 0 or high > memory.size):
            fail(
                c.ERR_BUFFER,
                f"the data reach from byte {low} to byte {high} of a buffer that has "
                f"{memory.size} bytes: give a larger buffer, or fewer elements",
            )


def as_list(value: Any) -> Any:
    """An array as a list; anything else as it is."""
    return value.tolist() if isinstance(value, np.ndarray) else value
