"""Pieces: where the bytes of an element lie in memory, and where they go when it is packed.

An element is a few pieces. One piece is many runs of equal length: at regular steps, in any number
of dimensions, so that it is copied as a strided array; or also wherever a list of offsets says, so
that its runs are gathered by an index array. Neither needs memory for each repetition, except the
offsets that the program gave.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Offsets: TypeAlias = NDArray[np.int64]
Dim: TypeAlias = tuple[int, int, int]
"""How many, and the steps from one to the next, in memory and packed."""

DISTINCT = 16
"""Runs of more different lengths than this are cut into units of one length."""

ONE_BY_ONE = 4096
"""From so many bytes on, what starts at one offset is copied by itself: the call is worth it."""

BATCH = 1 << 18
"""How many runs are gathered with one index array."""


class Piece(NamedTuple):
    """Runs of ``item`` bytes: in each of the dimensions, at each of the spots.

    Attributes:
        at, to: where it begins, in memory and in the packed element.
        dims: the outermost first.
        spots: offsets from there, in memory and packed, those ascending; None: there is one spot.
    """

    at: int
    to: int
    dims: tuple[Dim, ...]
    item: int
    spots: tuple[Offsets, Offsets] | None = None


Pieces: TypeAlias = tuple[Piece, ...]


def run(nbytes: int) -> Pieces:
    """Contiguous bytes."""
    return (Piece(0, 0, (), nbytes),)


def is_run(pieces: Pieces) -> bool:
    """Whether this is one run of contiguous bytes."""
    return len(pieces) == 1 and _is_run(pieces[0])


def moved(pieces: Pieces, at: int, to: int) -> Pieces:
    """The same elsewhere."""
    return tuple(_shifted(piece, at, to) for piece in pieces)


def repeated(pieces: Pieces, times: int, step: int, size: int) -> Pieces:
    """Several, ``step`` bytes apart in memory; each has ``size`` bytes."""
    return tuple(_with_dim(piece, (times, step, size)) for piece in pieces)


def joined(parts: Iterable[Piece]) -> Pieces:
    """One after the other; runs that touch each other become one."""
    made: list[Piece] = []
    for piece in parts:
        last = made[-1] if made else None
        if last is not None and _follows(piece, last):
            made[-1] = last._replace(item=last.item + piece.item)
        else:
            made.append(piece)
    return tuple(made)


def scattered(pieces: Pieces, at: Offsets, to: Offsets) -> Pieces:
    """One at each of the offsets."""
    made = []
    for piece in pieces:
        spots = at, to
        if piece.spots is not None:
            spots = _sums(at, piece.spots[0]), _sums(to, piece.spots[1])
        made.append(_regular(piece._replace(spots=spots)))
    return tuple(made)


def runs(at: Offsets, lengths: Offsets) -> Pieces:
    """Runs of these lengths at these offsets, packed one after the other."""
    apart = np.flatnonzero(at[1:] != at[:-1] + lengths[:-1]) + 1
    first = np.concatenate(([0], apart))
    at, lengths = at[first], np.add.reduceat(lengths, first)
    to = np.cumsum(lengths) - lengths
    distinct = np.unique(lengths)
    if len(distinct) > DISTINCT:
        unit = int(np.gcd.reduce(distinct))
        units = lengths // unit
        gaps = at - to
        to = np.arange(int(units.sum()), dtype=np.int64) * unit
        return scattered(run(unit), np.repeat(gaps, units) + to, to)
    made: list[Piece] = []
    for length in distinct:
        which = lengths == length
        made += scattered(run(int(length)), at[which], to[which])
    return tuple(made)


def gather(
    pieces: Pieces, memory: Bytes, origin: int, packed: Bytes, elements: Dim, start: int
) -> None:
    """Pack: fill ``packed`` with the data of several elements from packed byte *start* on.

    Args:
        origin: of the first element, in ``memory``.
        elements: how many elements hold these data, and their extent and size.
    """
    for piece in _wanted(pieces, elements, start, start + packed.size):
        _copy(_shifted(piece, origin, -start), memory, packed, pack=True)


def spread(
    pieces: Pieces, memory: Bytes, origin: int, packed: Bytes, elements: Dim, start: int
) -> None:
    """The inverse of ``gather``. It leaves the other bytes of cut elements alone."""
    for piece in _wanted(pieces, elements, start, start + packed.size):
        _copy(_shifted(piece, origin, -start), memory, packed, pack=False)


def _is_run(piece: Piece) -> bool:
    return not piece.dims and piece.spots is None


def _shifted(piece: Piece, at: int, to: int) -> Piece:
    return Piece(piece.at + at, piece.to + to, piece.dims, piece.item, piece.spots)


def _with_dim(piece: Piece, dim: Dim) -> Piece:
    times, step, stride = dim
    if times == 1:
        return piece
    at, to, dims, item, spots = piece
    if not dims:
        if step == stride == item:
            return Piece(at, to, (), item * times, spots)
        return Piece(at, to, (dim,), item, spots)
    inner, inner_step, inner_stride = dims[0]
    if step == inner * inner_step and stride == inner * inner_stride:
        dims = ((times * inner, inner_step, inner_stride), *dims[1:])
        return Piece(at, to, dims, item, spots)
    return Piece(at, to, (dim, *dims), item, spots)


def _follows(piece: Piece, last: Piece) -> bool:
    if not (_is_run(piece) and _is_run(last)):
        return False
    return piece.at == last.at + last.item and piece.to == last.to + last.item


def _sums(outer: Offsets, inner: Offsets) -> Offsets:
    sums: Offsets = np.add.outer(outer, inner).ravel()
    return sums


def _regular(piece: Piece) -> Piece:
    """The same, with a dimension for the spots if they are regular."""
    if piece.spots is None:
        return piece
    at, to = piece.spots
    if len(at) > 1 and (np.ptp(np.diff(at)) != 0 or np.ptp(np.diff(to)) != 0):
        return piece
    single = _shifted(piece._replace(spots=None), int(at[0]), int(to[0]))
    if len(at) == 1:
        return single
    return _with_dim(single, (len(at), int(at[1] - at[0]), int(to[1] - to[0])))


# ---- a range of the packed bytes ----


def _wanted(pieces: Pieces, elements: Dim, start: int, end: int) -> Iterator[Piece]:
    for piece in repeated(pieces, *elements):
        if start == 0 and end == elements[0] * elements[2]:
            yield piece
        else:
            yield from _within(piece, start, end)


def _within(piece: Piece, start: int, end: int) -> Iterator[Piece]:
    """What of it is in the packed bytes from *start* to *end*.

    In each dimension, and of the spots, the first ones are packed first: so those in the middle are
    wanted whole, and only those at the ends have to be cut.
    """
    at, to, dims, item, spots = piece
    if spots is not None and not (dims and dims[0][2] > spots[1][-1] - spots[1][0]):
        yield from _within_spots(piece, spots, start, end)
    elif dims:
        yield from _within_dim(piece, start, end)
    else:
        low, high = max(to, start), min(to + item, end)
        if low < high:
            yield Piece(at + low - to, low, (), high - low)


def _within_spots(
    piece: Piece, spots: tuple[Offsets, Offsets], start: int, end: int
) -> Iterator[Piece]:
    single = piece._replace(spots=None)
    begin, length = _packed_range(single)
    first, last = np.searchsorted(spots[1], (start - begin - length + 1, end - begin))
    at, to = spots[0][first:last], spots[1][first:last]
    whole = (to + begin >= start) & (to + begin + length <= end)
    if whole.any():
        yield piece._replace(spots=(at[whole], to[whole]))
    for one in np.flatnonzero(~whole):
        yield from _within(_shifted(single, int(at[one]), int(to[one])), start, end)


def _within_dim(piece: Piece, start: int, end: int) -> Iterator[Piece]:
    (times, step, stride), *rest = piece.dims
    single = piece._replace(dims=tuple(rest))
    begin, length = _packed_range(single)
    first = max(0, -(-(start - begin) // stride))
    last = min(times, (end - begin - length) // stride + 1)
    if first < last:
        whole = _shifted(single, first * step, first * stride)
        yield _with_dim(whole, (last - first, step, stride))
    touched = range(
        max(0, (start - begin - length) // stride + 1), min(times, -(-(end - begin) // stride))
    )
    for one in touched:
        if not first <= one < last:
            yield from _within(_shifted(single, one * step, one * stride), start, end)


def _packed_range(piece: Piece) -> tuple[int, int]:
    """Where its packed data begin, and how many bytes on they end."""
    length = piece.item + sum((times - 1) * stride for times, _, stride in piece.dims)
    if piece.spots is None:
        return piece.to, length
    first, last = int(piece.spots[1][0]), int(piece.spots[1][-1])
    return piece.to + first, length + last - first


# ---- copying ----


def _copy(piece: Piece, memory: Bytes, packed: Bytes, *, pack: bool) -> None:
    at, to, dims, item, spots = piece
    counts, steps, strides = zip(*dims, strict=True) if dims else ((), (), ())
    places = [(0, 0)]
    if spots is not None:
        if prod(counts) * item < ONE_BY_ONE:
            _copy_scattered(piece, spots, memory, packed, pack=pack)
            return
        places = list(zip(spots[0].tolist(), spots[1].tolist(), strict=True))
    kind = _bytes_type(item)
    for here, there in places:
        apart = np.ndarray(counts, kind, memory.data, at + here, steps)
        close = np.ndarray(counts, kind, packed.data, to + there, strides)
        if pack:
            close[...] = apart
        else:
            apart[...] = close


def _copy_scattered(
    piece: Piece, spots: tuple[Offsets, Offsets], memory: Bytes, packed: Bytes, *, pack: bool
) -> None:
    inner_at, inner_to = (_offsets(piece.dims, which) for which in (1, 2))
    each = max(1, BATCH // len(inner_at))
    apart, close = _at_each_byte(memory, piece.item), _at_each_byte(packed, piece.item)
    for first in range(0, len(spots[0]), each):
        here = _sums(spots[0][first : first + each], inner_at) + piece.at
        there = _sums(spots[1][first : first + each], inner_to) + piece.to
        # Half of the time is saved where the packed runs follow one another, as they mostly do.
        follow = bool((np.diff(there) == piece.item).all())
        where = slice(int(there[0]), int(there[-1]) + 1, piece.item) if follow else there
        if pack:
            close[where] = apart[here]
        else:
            apart[here] = close[where]


def _offsets(dims: tuple[Dim, ...], which: int) -> Offsets:
    offsets = np.zeros(1, np.int64)
    for dim in dims:
        offsets = _sums(offsets, np.arange(dim[0], dtype=np.int64) * dim[which])
    return offsets


def _at_each_byte(memory: Bytes, item: int) -> NDArray[Any]:
    """An array whose n-th entry is the ``item`` bytes from byte n on."""
    return np.ndarray((memory.size - item + 1,), _bytes_type(item), memory.data, 0, (1,))


def _bytes_type(item: int) -> np.dtype[Any]:
    return np.dtype(f"u{item}") if item in (1, 2, 4, 8) else np.dtype((np.void, item))
