"""Memory as bytes: of an array, or at an address."""

from __future__ import annotations

import ctypes
import os
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
"""A piece of memory: a 1-D array, writable if the memory is."""


class _Span:
    """What tells NumPy of memory at an address, and keeps it alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, nbytes: int, readonly: bool, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, readonly),
            "shape": (nbytes,),
            "typestr": "|u1",
        }


def memory_at(address: int, nbytes: int, readonly: bool = False, owner: Any = None) -> Bytes:
    """The memory at an address, which lives while ``owner`` does. It is not touched."""
    memory: Bytes = np.asarray(_Span(address, nbytes, readonly, owner))
    return memory


def bytes_of(array: NDArray[Any]) -> Bytes:
    """The memory of a contiguous array, in either order."""
    return array.ravel("K").view(np.uint8)


def address_of(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def bounds(owner: Any) -> tuple[int, int]:
    """From where to where the memory reaches of which ``owner`` is, or may be, a part."""
    low, high = 0, 0
    while owner is not None:
        if isinstance(owner, np.ndarray):
            low, high = byte_bounds(owner)
            owner = owner.base
        elif isinstance(owner, memoryview):
            owner = owner.obj
        elif isinstance(owner, _Span):
            owner = owner.owner
        else:
            try:
                whole = np.frombuffer(owner, np.uint8)
            except (TypeError, ValueError, BufferError):
                break
            low, high = byte_bounds(whole)
            owner = getattr(owner, "_b_base_", None)  # of ctypes
    return low, high


_write: Any = ctypes.CDLL(None).write
_write.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_write.restype = ctypes.c_ssize_t


def is_readable(memory: Bytes) -> bool:
    """Whether this process can read the first and last byte, without trying so itself.

    The system is asked to: where it cannot, it says so, and the process lives on.
    """
    if memory.size == 0:
        return True
    first = address_of(memory)
    out, into = os.pipe()
    try:
        return all(_write(into, where, 1) == 1 for where in (first, first + memory.size - 1))
    finally:
        os.close(out)
        os.close(into)
