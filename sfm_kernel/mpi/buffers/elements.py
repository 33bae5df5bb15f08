"""Elements: what one call sends or receives, in one buffer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.mpi.base.constants import ERR_BUFFER, ERR_OP
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.buffers.memory import (
    Bytes,
    address_of,
    bounds,
    bytes_of,
    is_readable,
    memory_at,
)

if TYPE_CHECKING:
    from sfm_kernel.mpi.datatypes.datatype import Datatype
    from sfm_kernel.mpi.datatypes.state import TypeState

NONE: Bytes = np.empty(0, np.uint8)


class Elements:
    """``count`` elements of a datatype in memory.

    Their data are *packed* when they travel: the bytes of all elements, without gaps. Positions in
    packed data are in bytes. ``get`` and ``put`` touch only the elements that they are about, so a
    large transfer goes in chunks and needs no second copy of all.

    Memory is looked at when it is touched: a count that is too large for the buffer does no harm
    while fewer elements come in. Elements may lie around what was given, in the array of which that
    is a view; so a datatype can start at ``a[0, 2:]`` and go through all rows of ``a``.

    Attributes:
        owner: what keeps the memory alive.
        memory: the memory; writable if that is.
        origin: where in it element 0 has its origin, in bytes; negative if that lies before it.
        count: how many elements there are.
        datatype: their type.
        nbytes: the size of their packed data.
    Every access may raise
        Exception: ERR_BUFFER: elements that are touched lie outside the memory.
    """

    __slots__ = ("_memory", "_state", "count", "datatype", "nbytes", "origin", "owner")

    def __init__(
        self,
        owner: Any,
        datatype: Datatype,
        count: int,
        origin: int = 0,
        memory: Bytes | None = None,
    ) -> None:
        """Without ``memory``, it is that of ``owner``, a contiguous NumPy array."""
        self.owner, self.datatype, self.count, self.origin = owner, datatype, count, origin
        state: Any = datatype._state  # not null: whoever makes this has looked
        self._state: TypeState = state
        self.nbytes = count * self._state.size
        self._memory = memory

    @property
    def memory(self) -> Bytes:
        if self._memory is None:
            self._memory = bytes_of(self.owner)
        return self._memory

    def __repr__(self) -> str:
        return f"<{self.count} elements of {self.datatype!r}, {self.nbytes} bytes>"

    def get(self, start: int = 0, end: int | None = None) -> Bytes:
        """Bytes *start* to *end* of the packed data; a view if the datatype is contiguous."""
        end = self.nbytes if end is None else end
        state = self._state
        if state.contiguous:
            low = self._holding(self.origin + start, self.origin + end)
            return self.memory[low : low + end - start]
        self._reach(start, end)
        return state.pack(self.memory, self.origin, start, end)

    def put(self, start: int, data: NDArray[Any]) -> None:
        """Replace the packed data from byte *start* on."""
        data = bytes_of(data)
        state = self._state
        if state.contiguous:
            low = self.origin + start
            low = self._holding(low, low + data.size)
            self.memory[low : low + data.size] = data
            return
        self._reach(start, start + data.size)
        state.unpack(self.memory, self.origin, data, start)

    def view(self, nbytes: int) -> Bytes | None:
        """The memory in which the first bytes of the packed data lie as they are, if they do."""
        return self.get(0, nbytes) if self._state.contiguous else None

    def array(self) -> NDArray[Any]:
        """The data as a 1-D array of the datatype's base type; a view if it is contiguous.

        Raises:
            Exception: ERR_OP: the datatype has parts of different types.
        """
        base = self._state.base
        if base is None:
            fail(
                ERR_OP,
                f"{self.datatype!r} has parts of different types, or of none that NumPy knows: an "
                "operation needs elements of one type",
            )
        if self._memory is None and self.owner.dtype is base:
            whole: NDArray[Any] = self.owner.ravel("K")
            return whole
        return self.get().view(base)

    def put_array(self, array: NDArray[Any]) -> None:
        """Replace the data by those of a 1-D array of the base type.

        Nothing happens if that is what ``array`` gave, and a view.
        """
        if self._state.contiguous:
            mine = self.array()
            if not _is_same(mine, array):
                np.copyto(mine[: array.size], array)
            return
        self.put(0, np.ascontiguousarray(array, self._state.base))

    def part(self, first: int, count: int) -> Elements:
        """The ``count`` elements from element ``first`` on."""
        origin = self.origin + first * self._state.extent
        return Elements(self.owner, self.datatype, count, origin, self.memory)

    # ---- memory ----

    def _reach(self, start: int, end: int) -> None:
        """Have the memory of the elements in which bytes *start* to *end* of the data lie."""
        if start >= end:
            return
        state = self._state
        ends = (start // state.size * state.extent, (end - 1) // state.size * state.extent)
        low = self.origin + min(ends) + state.true_lb
        self._holding(low, self.origin + max(ends) + state.true_lb + state.true_extent)

    def _holding(self, low: int, high: int) -> int:
        """Have the memory from *low* to *high*, and return where *low* is then."""
        memory = self.memory
        if (low >= 0 and high <= memory.size) or low == high:
            return low
        given = address_of(memory)
        start, end = bounds(self.owner)
        if not (start <= given + low and given + high <= end):
            fail(
                ERR_BUFFER,
                f"the buffer has {memory.size} bytes, but {self!r} reach from byte {low} to byte "
                f"{high} of it: give a larger buffer, or fewer elements",
            )
        self._memory = memory_at(start, end - start, not memory.flags.writeable, self.owner)
        self.origin += given - start
        return low + given - start


def _is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return (
        np.may_share_memory(one, other)
        and address_of(one) == address_of(other)
        and (one.dtype, one.shape, one.strides) == (other.dtype, other.shape, other.strides)
    )


def at_address(address: int, datatype: Datatype, count: int) -> Elements:
    """Elements whose origin is an address (of BOTTOM, 0), wherever their parts lie.

    Raises:
        Exception: ERR_BUFFER: there is no memory.
    """
    elements = Elements(None, datatype, count, 0, NONE)
    if elements.nbytes == 0:
        return elements
    state = elements._state
    ends = (address, address + (count - 1) * state.extent)
    low = min(ends) + state.true_lb
    nbytes = max(ends) + state.true_lb + state.true_extent - low
    memory = memory_at(low, nbytes) if low > 0 else NONE
    if memory is NONE or not is_readable(memory):
        fail(
            ERR_BUFFER,
            f"{elements!r} at BOTTOM reach from address {low:#x} to {low + nbytes:#x}, where "
            "this process has no memory: displacements are addresses there (MPI.Get_address)",
        )
    return Elements(None, datatype, count, address - low, memory)
