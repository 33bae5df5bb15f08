"""Items of lists, arrays and other buffers, which are sent and received.

``source`` and ``destination`` check the user's arguments before anything is sent. Chunks are then
read from, or written to, the object that they return. An item has the same number on both sides,
whatever the kinds of the two buffers.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

KINDS = "biufcMmSU"
"""Kinds of NumPy types that are items: numbers, dates, texts of one length."""

LADDER = "buifc"
"""Kinds of numbers; a list's numbers may be converted to a later kind.

It is an error if an integer loses its value or a finite number becomes infinite; floats are
rounded.
"""


def item_type(datatype: DTypeLike) -> np.dtype[Any]:
    """The NumPy type that ``datatype`` names.

    Raises:
        TypeError: it names no type, or its items are not numbers, dates or texts of one length.
    """
    try:
        dtype = np.dtype(datatype if datatype is not None else "none")
    except TypeError:
        raise TypeError(
            f"datatype {datatype!r} names no type of items: give a NumPy type, such as 'float64'"
        ) from None
    if dtype.kind not in KINDS or dtype.itemsize == 0:
        raise TypeError(
            f"items cannot be of type {dtype}: give numbers, dates, or texts of one length such as "
            f"'S8'; records and others can be sent as their bytes, 'uint8'"
        )
    return dtype


class Items(ABC):
    """``count`` items of a buffer, numbered from 0."""

    def __init__(self, dtype: np.dtype[Any], count: int) -> None:
        self.dtype, self.count = dtype, count

    @abstractmethod
    def get(self, start: int, end: int) -> NDArray[Any]:
        """Items ``start`` … ``end`` - 1, contiguous; a view if possible."""

    @abstractmethod
    def put(self, start: int, end: int, chunk: NDArray[Any]) -> None:
        """Replace items ``start`` … ``end`` - 1 by a copy of ``chunk``."""


class _ListItems(Items):
    def __init__(self, values: Any, dtype: np.dtype[Any], offset: int, count: int) -> None:
        super().__init__(dtype, count)
        self._values, self._offset = values, offset

    def get(self, start: int, end: int) -> NDArray[Any]:
        values = self._values[self._offset + start : self._offset + end]
        if not values:
            return np.empty(0, self.dtype)
        found = np.asarray(values)
        if found.ndim != 1 or not _becomes(found.dtype, self.dtype):
            kind = "lists" if found.ndim != 1 else f"of type {found.dtype}"
            raise TypeError(
                f"the items {self._offset + start} to {self._offset + end - 1} of the list are "
                f"{kind}, not {self.dtype}: name their type, or convert them"
            )
        with np.errstate(over="ignore"):  # _fits checks it
            items = found.astype(self.dtype)
        if not _fits(values, found, items):
            raise OverflowError(
                f"a number among the items {self._offset + start} to {self._offset + end - 1} of "
                f"the list does not fit into {self.dtype}: name a larger type, for large integers "
                f"such as 'int64', or round them with float() first"
            )
        return items

    def put(self, start: int, end: int, chunk: NDArray[Any]) -> None:
        self._values[self._offset + start : self._offset + end] = chunk.tolist()


def _becomes(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether values may be sent as another type: numbers as numbers, and texts if they fit."""
    if found.kind in LADDER and wanted.kind in LADDER:
        small_enough = LADDER.index(found.kind) <= LADDER.index(wanted.kind)
        return small_enough or (found.kind, wanted.kind) == ("i", "u")  # unless one is negative
    return found.kind == wanted.kind and found.itemsize <= wanted.itemsize


def _fits(values: Any, found: NDArray[Any], items: NDArray[Any]) -> bool:
    """Whether each integer of a list has kept its value, and each finite number is still finite.

    ``found`` is NumPy's array of ``values``, and ``items`` the array that is sent. If some values
    are floats, even ``found`` may have lost the last digits of an integer.
    """
    if items.dtype.kind in "iu":
        return bool((items == found).all())
    if items.dtype.kind not in "fc":
        return True
    if (np.isfinite(found) & ~np.isfinite(items)).any():
        return False
    exact = 2.0 ** (np.finfo(items.dtype).nmant + 1)  # every integer up to here is a float
    large = np.flatnonzero((found.real >= exact) | (found.real <= -exact))
    return all(
        int(items[index].real) == values[index]
        for index in large
        if isinstance(values[index], int | np.integer)
    )


class _ArrayItems(Items):
    def __init__(self, array: NDArray[Any], offset: int, count: int) -> None:
        super().__init__(array.dtype, count)
        self._view = array[offset : offset + count]

    def get(self, start: int, end: int) -> NDArray[Any]:
        return np.ascontiguousarray(self._view[start:end])

    def put(self, start: int, end: int, chunk: NDArray[Any]) -> None:
        self._view[start:end] = chunk


def source(buf: Any, offset: int, count: int, datatype: DTypeLike) -> Items:
    """The items to send.

    Args:
        buf: a list or tuple of simple values; or an array, bytes, or another object with the buffer
            protocol. Bytes can hold items of any type.
        offset, count: numbers of items.
    Raises:
        TypeError: ``buf`` is none of these, or its items are of another type than ``datatype``.
        ValueError: an item does not exist; the array is neither one-dimensional nor contiguous.
    """
    return _items(buf, offset, count, item_type(datatype), into=False)


def destination(buf: Any, offset: int, count: int, datatype: DTypeLike) -> Items:
    """The items to replace. As ``source``, but ``buf`` must be writable: not a tuple or bytes."""
    return _items(buf, offset, count, item_type(datatype), into=True)


def _items(buf: Any, offset: int, count: int, dtype: np.dtype[Any], *, into: bool) -> Items:
    offset, count = checked_int(offset, "offset", 0), checked_int(count, "count", 0)
    if isinstance(buf, list) or (isinstance(buf, tuple) and not into):
        _check_range(len(buf), offset, count)
        return _ListItems(buf, dtype, offset, count)
    array = _array(buf, dtype)
    if array.dtype != dtype:
        raise TypeError(f"buf holds items of type {array.dtype}, and datatype says {dtype}")
    if into and not array.flags.writeable:
        raise ValueError("buf is read-only, and nothing can be received into it")
    _check_range(len(array), offset, count)
    return _ArrayItems(array, offset, count)


def _array(buf: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The memory of ``buf`` as an array of one dimension."""
    if isinstance(buf, np.ndarray):
        array: NDArray[Any] = np.asarray(buf)
    else:
        try:
            memory = memoryview(buf)
        except TypeError:
            raise TypeError(
                f"buf is a list, an array, or something else with the buffer protocol that can "
                f"hold items, not {type(buf).__name__}"
            ) from None
        if memory.format == "B" and memory.c_contiguous:
            whole_items = memory.nbytes // dtype.itemsize
            array = np.frombuffer(memory.cast("B"), np.uint8)
            return array[: whole_items * dtype.itemsize].view(dtype)
        array = np.asarray(memory)
    if array.ndim == 1:
        return array
    if not array.flags.c_contiguous:
        raise ValueError(
            f"buf has {array.ndim} dimensions and its memory is not contiguous in C's order: send "
            f"it row by row, or numpy.ascontiguousarray(buf)"
        )
    return array.reshape(-1)


def _check_range(length: int, offset: int, count: int) -> None:
    if offset + count > length:
        raise ValueError(
            f"offset {offset} and count {count} reach beyond the end of buf, which has {length} "
            f"items of this type"
        )


def checked_int(value: Any, name: str, least: int) -> int:
    """``value`` as an int of at least ``least``. Raises TypeError or ValueError, which name it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number
