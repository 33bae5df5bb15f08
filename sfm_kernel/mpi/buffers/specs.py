"""Message specifications: from what a program gives as a buffer to Elements.

==============================  =================================================================
``data``                        all of it, in elements of its own type
``[data, count]``               the first *count*
``[data, datatype]``            all of it, in elements of this type
``[data, count, datatype]``
``[data, count, displ,          from element *displ* on; also ``[data, (count, displ), datatype]``
datatype]``                     and ``[data, (count, displ)]``
``[data, counts, displs,        for several processes: also one count for all, or one distance
datatype]``                     between them; also ``[data, (counts, displs), datatype]``
``[data, counts, displs,        with a type for each process; displacements in bytes
datatypes]``
==============================  =================================================================

Counts or displacements that are missing or None are inferred from the size of the data. A datatype
is a Datatype or a type code. The data may be BOTTOM (displacements are addresses), or None if
nothing is sent.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from sfm_kernel.mpi.base.constants import ERR_BUFFER, ERR_COUNT, ERR_TYPE
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.buffers.blocks import Blocks
from sfm_kernel.mpi.buffers.elements import Elements, at_address
from sfm_kernel.mpi.buffers.exporters import acquire
from sfm_kernel.mpi.buffers.memory import Bytes
from sfm_kernel.mpi.buffers.special import BOTTOM, Constant
from sfm_kernel.mpi.buffers.typecodes import datatype_of_items, plain_datatype
from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.predefined import BYTE, by_code


def for_send(spec: Any, parts: int = 1) -> Elements:
    """What a specification says to send; if it is for several *parts*, that of one of them."""
    return _quick(spec, into=False, parts=parts) or _one(spec, into=False, parts=parts)


def for_recv(spec: Any, parts: int = 1) -> Elements:
    """Where a specification says to receive; if it is for several *parts*, that of one of them."""
    return _quick(spec, into=True, parts=parts) or _one(spec, into=True, parts=parts)


def nothing() -> Elements:
    """No elements: what is sent to, or received from, PROC_NULL."""
    return at_address(0, BYTE, 0)


def block(spec: Any, blocks: int, into: bool) -> Blocks:
    """Equal blocks, one for each of several processes."""
    source, count, offset = _parse(spec, into, blocks)
    return Blocks.equal(source.elements(count * blocks, offset), blocks, count)


def vector(spec: Any, blocks: int, into: bool) -> Blocks:
    """Blocks with counts and displacements of their own."""
    obj, counts, displs, code = _split(spec, tuple)
    source = _source(obj, into, code)
    if counts is None:
        entries = _entries(source.nbytes, source.datatype) if source.nbytes else 0
        more = entries % blocks if blocks else 0
        numbers = [entries // blocks + (block < more) for block in range(blocks)]
    elif (count := _index(counts)) is not None:
        numbers = [count] * blocks
    else:
        numbers = integers(counts, blocks)
    for number in numbers:
        if number < 0:
            fail(ERR_COUNT, f"a count is negative: {number}")
    ends = [0]
    for number in numbers:
        ends.append(ends[-1] + number)
    if displs is None:
        where = ends[:-1]
    elif (step := _index(displs)) is not None:
        where = [step * block for block in range(blocks)]
    else:
        where = integers(displs, blocks)
    if where == ends[:-1]:
        return Blocks.of(source.elements(ends[-1], 0), numbers)
    state = source.datatype._state
    extent = 0 if state is None else state.extent
    return Blocks(
        [
            source.elements(number, displ * extent)
            for number, displ in zip(numbers, where, strict=True)
        ]
    )


def wide(spec: Any, blocks: int, into: bool) -> Blocks:
    """Blocks with counts, displacements in bytes, and datatypes of their own."""
    if not isinstance(spec, (list, tuple)):
        raise TypeError(
            f"a list or tuple is needed: [data, counts, displs, datatypes], not a "
            f"{type(spec).__name__}"
        )
    counts = displs = None
    if len(spec) == 2:
        obj, types = spec
    elif len(spec) == 3:
        obj, (counts, displs), types = spec
    elif len(spec) == 4:
        obj, counts, displs, types = spec
    else:
        raise _wrong_length(spec)
    memory: Bytes | None = None
    if obj is None or obj is BOTTOM:
        if counts is None or displs is None:
            raise ValueError("BOTTOM needs counts and displacements: nothing can be inferred")
    else:
        memory = acquire(obj, into).within_reach()
    numbers, where = [1] * blocks, [0] * blocks
    if counts is not None or displs is not None:
        numbers, where = integers(counts, blocks), integers(displs, blocks)
    if len(types) != blocks:
        raise ValueError(f"{blocks} datatypes are needed, not {len(types)}")
    for datatype in types:
        if not isinstance(datatype, Datatype):
            raise TypeError(f"a Datatype is needed for each process, not {datatype!r}")
    return Blocks(
        [
            _Source(obj, memory, datatype).elements(number, displ)
            for number, displ, datatype in zip(numbers, where, types, strict=True)
        ]
    )


# ---- one buffer ----


def _quick(spec: Any, into: bool, parts: int) -> Elements | None:
    """Elements for the usual: a NumPy array, or ``[array, datatype]``; None for all else."""
    kind = type(spec)
    if kind is np.ndarray:
        array = spec
        datatype: Any = plain_datatype(array.dtype)
        own = datatype
    elif (kind is list or kind is tuple) and len(spec) == 2 and type(spec[0]) is np.ndarray:
        array, datatype = spec
        own = plain_datatype(array.dtype)
    else:
        return None
    flags = array.flags
    if own is None or parts != 1 or not flags.forc or (into and not flags.writeable):
        return None
    if datatype is own:
        return Elements(array, own, array.size)
    if not isinstance(datatype, Datatype):
        return None
    state = datatype._state
    if state is None or not state.contiguous or state.size == 0 or array.nbytes % state.size:
        return None
    count = array.nbytes // state.size
    return Elements(array, _checked(datatype, count), count)


def _one(spec: Any, into: bool, parts: int) -> Elements:
    source, count, offset = _parse(spec, into, parts)
    return source.elements(count, offset)


class _Source:
    """Data that were given, and the type of their elements."""

    __slots__ = ("datatype", "memory", "nbytes", "obj")

    def __init__(self, obj: Any, memory: Bytes | None, datatype: Datatype) -> None:
        self.obj, self.memory, self.datatype = obj, memory, datatype
        self.nbytes = 0 if memory is None else memory.size

    def elements(self, count: int, offset: int) -> Elements:
        """Elements from byte *offset* on."""
        datatype = _checked(self.datatype, count)
        if self.memory is None:
            return at_address(offset, datatype, count)
        return Elements(self.obj, datatype, count, offset, self.memory)


def _source(obj: Any, into: bool, code: Any) -> _Source:
    if obj is None or obj is BOTTOM:
        return _Source(obj, None, _datatype(code))
    if isinstance(obj, Constant):
        fail(ERR_BUFFER, f"{obj!r} cannot be given here: give a buffer")
    found = acquire(obj, into, infer=code is None)
    datatype = datatype_of_items(found.format) if code is None else _datatype(code)
    return _Source(obj, found.within_reach(), datatype)


def _parse(spec: Any, into: bool, blocks: int) -> tuple[_Source, int, int]:
    """The data, the count of one of the blocks, and the offset in bytes."""
    obj, counts, displs, code = _split(spec, (list, tuple))
    source = _source(obj, into, code)
    left, offset = source.nbytes, 0
    if displs is not None:
        displ = operator.index(displs)
        if displ < 0:
            raise ValueError(f"the displacement is negative: {displ}")
        if displ > 0:
            extent = _extent(source.datatype, "a displacement needs")
            offset = displ * extent
            if offset > left:
                raise ValueError(
                    f"displacement {displ} is outside of the data, which have {left // extent} "
                    "elements"
                )
            left -= offset
    if counts is not None:
        count = operator.index(counts)
        if count < 0:
            raise ValueError(f"the count is negative: {count}")
        if count > 0 and obj is None:
            raise ValueError(f"{count} elements, but no data: they are None")
        return source, count, offset
    count = _entries(left, source.datatype) if left else 0
    if blocks > 1:
        count, rest = divmod(count, blocks)
        if rest:
            raise ValueError(
                f"the number of elements is not a multiple of {blocks}, the number of blocks: give "
                "the count of one block"
            )
    return source, count, offset


def _split(spec: Any, pair: Any) -> tuple[Any, Any, Any, Any]:
    """Data, counts, displacements, datatype; None where there is none."""
    if not isinstance(spec, (list, tuple)):
        if spec is None:
            raise TypeError("a buffer is needed, not None; [None, datatype] has no elements")
        return spec, None, None, None
    counts = displs = code = None
    if len(spec) == 2:
        obj, counts = spec
        if isinstance(counts, (Datatype, str, np.dtype)):
            return obj, None, None, counts
    elif len(spec) == 3:
        obj, counts, code = spec
    elif len(spec) == 4:
        obj, counts, displs, code = spec
        return obj, counts, displs, code
    else:
        raise _wrong_length(spec)
    if isinstance(counts, pair):
        counts, displs = counts
    return obj, counts, displs, code


def _wrong_length(spec: Sequence[Any]) -> ValueError:
    return ValueError(
        f"a buffer is given by 2 to 4 items, such as [data, count, datatype], not by {len(spec)}"
    )


def _datatype(code: Any) -> Datatype:
    return code if isinstance(code, Datatype) else by_code(code)


def _checked(datatype: Datatype, count: int) -> Datatype:
    """The datatype, if that many elements of it can be sent; the program may free its own then.

    As in MPICH, no elements can be of any type.
    """
    if datatype._is_predefined and datatype._state is not None:
        return datatype
    state = datatype._state
    if state is None:
        if count == 0:
            return BYTE
        fail(ERR_TYPE, "the datatype is DATATYPE_NULL, or was freed: give another one")
    if not state.committed and count != 0:
        fail(ERR_TYPE, f"{datatype!r} is not committed: call its Commit() first")
    return Datatype._of(state)


def _extent(datatype: Datatype, what: str) -> int:
    state = datatype._state
    if state is None:
        raise ValueError(f"{what} a datatype, not DATATYPE_NULL")
    if state.extent <= 0:
        raise ValueError(f"{what} a datatype of positive extent, not {state.extent}")
    extent: int = state.extent
    return extent


def _entries(nbytes: int, datatype: Datatype) -> int:
    """How many elements there are in so many bytes."""
    extent = _extent(datatype, "to infer the count needs")
    count, rest = divmod(nbytes, extent)
    if rest:
        raise ValueError(
            f"the data have {nbytes} bytes, which is no multiple of {extent}, the extent of the "
            "datatype: give the count"
        )
    return count


def _index(value: Any) -> int | None:
    """The value if it is an integer, else None."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def integers(values: Any, size: int) -> list[int]:
    """One integer for each of *size* processes."""
    if len(values) != size:
        raise ValueError(f"{size} integers are needed, one for each process, not {len(values)}")
    return [operator.index(value) for value in values]
