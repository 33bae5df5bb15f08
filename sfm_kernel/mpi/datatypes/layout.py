"""Layout: where the data of a type lie in memory, and of what basic types they are.

Layouts are made of layouts. Sizes and bounds are known at once. The pieces that packing needs are
found when they are first asked for: most types are only steps to others.

Source: MPI 5.0, section 5.1. As in MPICH, the bounds that ``Create_resized`` sets are those of the
new type alone, and do not hide the bounds of what lies beside it in a struct.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from sfm_kernel.mpi.datatypes import pieces as piecework
from sfm_kernel.mpi.datatypes.basics import Basic
from sfm_kernel.mpi.datatypes.pieces import Offsets, Piece, Pieces
from sfm_kernel.mpi.datatypes.signature import EMPTY, Signature

Bounds: TypeAlias = tuple[int, int]
"""The first byte, and the one behind the last, from the origin on."""

Group: TypeAlias = tuple[int, int, int, int]
"""Blocks of an array's dimension: the first index, the step, how many, and how long each is."""


class Layout:
    """What the constructors of datatypes make.

    Attributes:
        signature: the basic types, in order.
        size: bytes of data.
        lb, ub: the bounds; the next element is ``extent`` bytes on.
        true_lb, true_ub: the bounds of the data themselves.
        align: of which number of bytes its address is a multiple in a C struct.
    """

    def __init__(
        self,
        signature: Signature,
        bounds: Bounds,
        true_bounds: Bounds,
        align: int,
        make: Callable[[], Pieces],
    ) -> None:
        self.signature, self.size = signature, signature.nbytes
        self.align = align if self.size else 1
        self.lb, self.ub = bounds
        self.extent = self.ub - self.lb
        self.true_lb, self.true_ub = true_bounds if self.size else (0, 0)
        self._make = make

    @cached_property
    def pieces(self) -> Pieces:
        """For packing."""
        return self._make() if self.size else ()

    @cached_property
    def contiguous(self) -> bool:
        """Whether elements are the bytes from the origin on, and follow each other without gaps."""
        if self.true_lb != 0 or not self.extent == self.true_ub == self.size:
            return False
        return self.size == 0 or piecework.is_run(self.pieces)

    @property
    def is_spread(self) -> bool:
        """Whether it takes part in what is made of it: it has data, or at least an extent."""
        return self.size != 0 or self.extent != 0


NOTHING = Layout(EMPTY, (0, 0), (0, 0), 1, tuple)


def basic(kind: Basic) -> Layout:
    """One value of a basic type, as C has it."""
    signature = Signature(((kind, 1),))
    if kind.kind != "pair":
        bounds = (0, kind.nbytes)
        return Layout(signature, bounds, bounds, kind.align, lambda: piecework.run(kind.nbytes))
    (first, _), (second, _) = kind.scalars
    second_at = -(-first.itemsize // second.alignment) * second.alignment

    def make() -> Pieces:
        value, index = piecework.run(first.itemsize), piecework.run(second.itemsize)
        return piecework.joined(value + piecework.moved(index, second_at, first.itemsize))

    data = (0, second_at + second.itemsize)
    return Layout(signature, (0, kind.extent), data, kind.align, make)


def contiguous(old: Layout, count: int) -> Layout:
    return vector(old, 1, count, 0)


def vector(old: Layout, count: int, blocklength: int, stride: int) -> Layout:
    """Blocks, each ``stride`` bytes behind the one before."""
    if count * blocklength == 0 or not old.is_spread:
        return NOTHING
    if count * blocklength == 1:
        return old
    block = blocklength * old.size

    def make() -> Pieces:
        inner = piecework.repeated(old.pieces, blocklength, old.extent, old.size)
        return piecework.repeated(inner, count, stride, block)

    def around(bounds: Bounds) -> Bounds:
        return _copies(_copies(bounds, blocklength, old.extent), count, stride)

    signature = old.signature.repeated(count * blocklength)
    return _derived(signature, around, old, make)


def indexed(old: Layout, lengths: Offsets, displacements: Offsets) -> Layout:
    """Blocks of these lengths, each as many bytes from the origin."""
    chosen = lengths != 0
    lengths, displacements = lengths[chosen], displacements[chosen]
    if not len(lengths) or not old.is_spread:
        return NOTHING

    def make() -> Pieces:
        if old.contiguous:
            return piecework.runs(displacements, lengths * old.size)
        to = (np.cumsum(lengths) - lengths) * old.size
        made: list[Piece] = []
        for length in np.unique(lengths):
            which = lengths == length
            block = piecework.repeated(old.pieces, int(length), old.extent, old.size)
            made += piecework.scattered(block, displacements[which], to[which])
        return tuple(made)

    def around(bounds: Bounds) -> Bounds:
        ends = displacements + (lengths - 1) * old.extent
        low = int(np.minimum(displacements, ends).min())
        high = int(np.maximum(displacements, ends).max())
        return bounds[0] + low, bounds[1] + high

    signature = old.signature.repeated(int(lengths.sum()))
    return _derived(signature, around, old, make)


def struct(lengths: Offsets, displacements: Offsets, old: Sequence[Layout]) -> Layout:
    """Blocks of several types. The extent is a multiple of the alignment, as in C."""
    entries = [
        (contiguous(one, length), displacement)
        for one, length, displacement in zip(
            old, lengths.tolist(), displacements.tolist(), strict=True
        )
    ]
    entries = [(one, displacement) for one, displacement in entries if one.is_spread]
    if not entries:
        return NOTHING
    data = [(one, displacement) for one, displacement in entries if one.size]
    lb = min(displacement + one.lb for one, displacement in entries)
    ub = max(displacement + one.ub for one, displacement in entries)
    align = max(one.align for one, _ in entries)
    ub += -(ub - lb) % align
    true_lb = min((displacement + one.true_lb for one, displacement in data), default=0)
    true_ub = max((displacement + one.true_ub for one, displacement in data), default=0)

    def make() -> Pieces:
        made: list[Piece] = []
        to = 0
        for one, displacement in data:
            made += piecework.moved(one.pieces, displacement, to)
            to += one.size
        return piecework.joined(made)

    signature = Signature.joined(one.signature for one, _ in data)
    return Layout(signature, (lb, ub), (true_lb, true_ub), align, make)


def resized(old: Layout, lb: int, extent: int) -> Layout:
    """The same data with other bounds."""
    data = (old.true_lb, old.true_ub)
    return Layout(old.signature, (lb, lb + extent), data, old.align, lambda: old.pieces)


def array(old: Layout, sizes: Sequence[int], groups: Sequence[Sequence[Group]]) -> Layout:
    """Some of the elements of an array, in its order; the bounds are the whole array's.

    Args:
        sizes: of the array, the slowest dimension first.
        groups: which indices of each dimension, in ascending order.
    """
    whole, counts = old.extent, 1
    data = (old.true_lb, old.true_ub)
    for size, groups_here in zip(reversed(sizes), reversed(groups), strict=True):
        counts *= sum(group[2] * group[3] for group in groups_here)
        if counts == 0:
            break
        blocks = [_along(data, group, whole) for group in groups_here if group[2] * group[3]]
        data = min(low for low, _ in blocks), max(high for _, high in blocks)
        whole *= size
    for_bounds = old.extent
    for size in sizes:
        for_bounds *= size

    def make() -> Pieces:
        pieces, step, size = old.pieces, old.extent, old.size
        for extent, groups_here in zip(reversed(sizes), reversed(groups), strict=True):
            made: list[Piece] = []
            to = 0
            for first, stride, count, length in groups_here:
                block = piecework.repeated(pieces, length, step, size)
                blocks = piecework.repeated(block, count, stride * step, length * size)
                made += piecework.moved(blocks, first * step, to)
                to += count * length * size
            pieces, step, size = piecework.joined(made), step * extent, to
        return pieces

    signature = old.signature.repeated(counts)
    return Layout(signature, (0, for_bounds), data, old.align, make)


def _derived(
    signature: Signature,
    around: Callable[[Bounds], Bounds],
    old: Layout,
    make: Callable[[], Pieces],
) -> Layout:
    data = around((old.true_lb, old.true_ub))
    return Layout(signature, around((old.lb, old.ub)), data, old.align, make)


def _copies(bounds: Bounds, times: int, step: int) -> Bounds:
    """Around several of the same, one or more."""
    last = (times - 1) * step
    return bounds[0] + min(0, last), bounds[1] + max(0, last)


def _along(bounds: Bounds, group: Group, step: int) -> Bounds:
    first, stride, count, length = group
    low, high = _copies(_copies(bounds, length, step), count, stride * step)
    return low + first * step, high + first * step
