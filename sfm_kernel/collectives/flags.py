"""Flags: memory that the members share, and no messages at all.

Every member writes its value into its cell of a tree, and arrives. The last member at a node
combines the cells below and goes up; the member that completes the top sets the flag for which all
wait. No member waits inside the tree. If there are more processes than cores, each of them sleeps
and wakes once in a reduction, however deep the tree is (native/src/combining_tree/).

A value larger than a cell (some 2000 bytes) goes in chunks through an area, which has a larger slot
for each member: every member reduces its share of the chunk over all slots, so that all cores work,
and copies the complete result. A broadcast is written there once, and read by all.

Messages: none. Depth: ceil(log4 p) combinations; for large arrays two rounds for each MB.

Source: J. Van Iwaarden, J. Steinman, G. Blank, "A Combined Shared Memory and TCP/IP Implementation
of the SPEEDES Communications Library", section 3.1 and Fig. 1. native/src/combining_tree/climb.rs
describes the differences, and gives their reasons.
"""

from __future__ import annotations

import functools
import pickle
from typing import Any

from sfm_kernel._native import CombiningTree, Operation, Outcome
from sfm_kernel.collectives import doubling, ring
from sfm_kernel.collectives.area import chunks, reduce_in_area
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.operations import (
    NATIVE,
    is_array,
    is_elementwise,
    is_plain,
    native_codes,
    put,
)
from sfm_kernel.collectives.team import Team

ROOM = CombiningTree.room
"""Bytes of a member's value in a round, at most."""


def barrier(call: Call) -> None:
    call.meet(Operation.KEEP, None)


def allreduce(call: Call, value: Any, out: Any = None) -> Any:
    assert call.op is not None
    if call.array:
        return _reduce_arrays(call, value, out)
    code, result = call.meet(NATIVE.get(call.op, Operation.OTHER), value)
    return settle(call, code, result, value)


def settle(call: Call, code: int, result: Any, value: Any) -> Any:
    """Complete an allreduce whose round did not end with a plain result; returns the result.

    Raises: the failure that all members now know, or that the member which gave up has reported.
    """
    if code == Outcome.LARGE:
        return doubling.allreduce(call, value)
    if code == Outcome.DUTY:
        return _fold(call, value)
    call.raise_if_failed(code, result)
    return pickle.loads(result) if code in (Outcome.BYTES, Outcome.RESULT) else result


def reduce(call: Call, value: Any, root: int, out: Any = None) -> Any:
    total = allreduce(call, value, out if call.rank == root else None)
    return total if call.rank == root else None


def bcast(call: Call, value: Any, root: int) -> Any:
    import numpy as np

    is_root = call.rank == root
    flat = None
    if is_root and is_array(value) and not value.dtype.hasobject and value.nbytes > 1000:
        about: tuple[Any, ...] = ("array", value.shape, value.dtype)
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    elif is_root:
        packed = pickle.dumps(value, 5)
        about = ("value", packed) if len(packed) < 1500 else ("pickle", len(packed))
        flat = np.frombuffer(packed, np.uint8)
    call.meet(Operation.KEEP, None, pickle.dumps(about, 5) if is_root else b"")
    about = pickle.loads(call.team.tree.cells(True)[root])
    if about[0] == "value":
        return value if is_root else pickle.loads(about[1])
    if not is_root:
        array = np.empty(*about[1:]) if about[0] == "array" else np.empty(about[1], np.uint8)
        flat = array.reshape(-1).view(np.uint8)
    assert flat is not None
    for area, start, stop in chunks(call, flat.size):
        if is_root:
            area.slots[0][: stop - start] = flat[start:stop]
        call.meet(Operation.KEEP, None, phase=2)
        if not is_root:
            flat[start:stop] = area.slots[0][: stop - start]
        call.meet(Operation.KEEP, None, phase=3)
    if is_root:
        return value
    return array if about[0] == "array" else pickle.loads(flat.data)


def allgather(call: Call, value: Any) -> list[Any]:
    packed = None if type(value) in (int, float) else _pack(value)
    code, _ = call.meet(Operation.KEEP, value, packed)
    if code == Outcome.LARGE:
        return ring.allgather(call, value)
    return _cells(call.team)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    values = allgather(call, value)
    return values if call.rank == root else None


def scan(call: Call, value: Any) -> Any:
    return functools.reduce(call.combine, allgather(call, value)[: call.rank + 1])


def _pack(value: Any) -> bytes:
    return pickle.dumps(value, 5)


def _cells(team: Team) -> list[Any]:
    cells = team.tree.cells(False)
    return [pickle.loads(cell) if type(cell) is bytes else cell for cell in cells]


def _fold(call: Call, value: Any) -> Any:
    """Combine the values of all members, as the last of them; all get the result.

    The values are the bytes of arrays like ``value``, or other objects.
    """
    tree = call.team.tree
    try:
        if not call.array or not is_plain(value):
            values = _cells(call.team)
        else:
            import numpy as np

            flat = [np.frombuffer(cell, value.dtype) for cell in tree.cells(True)]
            values = [array.reshape(value.shape).copy() for array in flat]
        total = functools.reduce(call.combine, values)
        packed = _pack(total)
    except BaseException as failure:  # noqa: BLE001 - reported to all, and raised here
        name = call.team.names[call.rank]
        text = f"{name!r} could not combine in {call.placed}: {type(failure).__name__}: {failure}"
        tree.conclude(_pack(text[:1000]), True)
        raise call.team.known(failure) from None
    if not tree.conclude(packed, False):
        call.team.raise_failure_of(tree.broken_by or 0)
    if len(packed) > ROOM:  # the tree had no room for it, and the others know
        return doubling.allreduce(call, value)
    return total


def _reduce_arrays(call: Call, value: Any, out: Any) -> Any:
    import numpy as np

    assert call.op is not None
    value = np.ascontiguousarray(value).reshape(value.shape)
    is_given = out is not None
    if value.nbytes > ROOM:
        if is_elementwise(call.op):
            return reduce_in_area(call, value, out)
        total = doubling.allreduce(call, value)
    else:
        if not is_given:
            out = np.empty_like(value)
        if is_plain(value):
            operation = native_codes().get(call.op, Operation.OTHER)
            code, result = call.meet(operation, value, None, out)
        else:
            code, result = call.meet(Operation.OTHER, None, _pack(value))
        total = out if code in (Outcome.INTS, Outcome.FLOATS) else settle(call, code, result, value)
    return put(out, total) if is_given and total is not out else total  # combined by Python
