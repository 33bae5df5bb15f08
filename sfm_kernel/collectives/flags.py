"""Flags: memory that the members share, and no messages at all.

Every member puts what it brings into its own place and says so; whoever comes last at a node of a
tree combines the places below and goes up; who completes the top sets the flag for which everybody
waits. Nobody waits inside the tree. Where there are more processes than cores, each of them sleeps
and wakes once in a reduction, however deep the tree is (native/src/combining_tree/).

What is larger than a place (some 2000 bytes) goes through an area of larger places, in pieces:
every member reduces its own part of the piece over all places, so that all cores work, and copies
the whole result. A broadcast is written once there, and read by all.

Messages: none. Depth: ceil(log4 p) combinations; for large arrays two rounds for each MB.

Source: J. Van Iwaarden, J. Steinman, G. Blank, "A Combined Shared Memory and TCP/IP Implementation
of the SPEEDES Communications Library", section 3.1 and Fig. 1. native/src/combining_tree/climb.rs
says what is done otherwise, and why.
"""

from __future__ import annotations

import pickle
from typing import Any, NoReturn

from sfm_kernel._native import CombiningTree, Operation, Outcome
from sfm_kernel.collectives import doubling, ring
from sfm_kernel.collectives.area import pieces, reduce_in_area
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.operations import (
    NATIVE,
    is_array,
    is_elementwise,
    is_plain,
    native_codes,
)
from sfm_kernel.collectives.team import Team
from sfm_kernel.errors import CollectiveError, CollectiveMismatch

ROOM = CombiningTree.room
"""Bytes that a member can bring to a round."""

DESCRIBE = (1 << 64) - 1
"""The mark of the round in which members say what they called, when that did not fit."""


def barrier(call: Call) -> None:
    meet(call, Operation.KEEP, None)


def allreduce(call: Call, value: Any, out: Any = None) -> Any:
    assert call.op is not None
    if call.array:
        return _reduce_arrays(call, value, out)
    code, result = meet(call, NATIVE.get(call.op, Operation.OTHER), value)
    return settle(call, code, result, value)


def settle(call: Call, code: int, result: Any, value: Any) -> Any:
    """What an allreduce's round came to, where that is not simply the result.

    Raises: what all members now know, or what the one who broke it off has told.
    """
    if code == Outcome.LARGE:
        return doubling.allreduce(call, value)
    if code == Outcome.DUTY:
        return _fold(call, value)
    _raise_if_failed(call, code, result)
    return pickle.loads(result) if code in (Outcome.BYTES, Outcome.RESULT) else result


def reduce(call: Call, value: Any, root: int, out: Any = None) -> Any:
    total = allreduce(call, value, out if call.rank == root else None)
    return total if call.rank == root else None


def bcast(call: Call, value: Any, root: int) -> Any:
    import numpy as np

    own = call.rank == root
    flat = None
    if own and is_array(value) and not value.dtype.hasobject and value.nbytes > 1000:
        about: tuple[Any, ...] = ("array", value.shape, value.dtype)
        flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    elif own:
        packed = pickle.dumps(value, 5)
        about = ("value", packed) if len(packed) < 1500 else ("pickle", len(packed))
        flat = np.frombuffer(packed, np.uint8)
    meet(call, Operation.KEEP, None, pickle.dumps(about, 5) if own else b"")
    about = pickle.loads(call.team.tree.cells(True)[root])
    if about[0] == "value":
        return value if own else pickle.loads(about[1])
    if not own:
        whole = np.empty(*about[1:]) if about[0] == "array" else np.empty(about[1], np.uint8)
        flat = whole.reshape(-1).view(np.uint8)
    assert flat is not None
    for area, start, stop in pieces(call, meet, flat.size):
        if own:
            area.places[0][: stop - start] = flat[start:stop]
        meet(call, Operation.KEEP, None, phase=2)
        if not own:
            flat[start:stop] = area.places[0][: stop - start]
        meet(call, Operation.KEEP, None, phase=3)
    if own:
        return value
    return whole if about[0] == "array" else pickle.loads(flat.data)


def allgather(call: Call, value: Any) -> list[Any]:
    code, _ = meet(
        call, Operation.KEEP, value, None if type(value) in (int, float) else _pack(value)
    )
    if code == Outcome.LARGE:
        return ring.allgather(call, value)
    return _cells(call.team)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    values = allgather(call, value)
    return values if call.rank == root else None


def scan(call: Call, value: Any) -> Any:
    values = allgather(call, value)
    total = values[0]
    for part in values[1 : call.rank + 1]:
        total = call.combine(total, part)
    return total


def meet(
    call: Call, op: int, value: Any, packed: bytes | None = None, out: Any = None, phase: int = 0
) -> tuple[int, Any]:
    """One round of all members: what it came to, and the result as far as there is one.

    ``phase`` tells the rounds of a call apart. Raises what has gone wrong elsewhere.
    """
    team = call.team
    tree, chain, tick = team.tree, team.ledger.chain, team.tick_at_tree
    code, result = tree.meet(chain, phase, op, value, packed, out, call.what, tick)
    if code == Outcome.STRANGE:
        packed = _pack(value)
        code, result = tree.meet(chain, phase, op, None, packed, out, call.what, tick)
    _raise_if_failed(call, code, result)
    return code, result


def _raise_if_failed(call: Call, code: int, result: Any) -> None:
    if code == Outcome.FAILURE:
        raise call.team.known(CollectiveError(pickle.loads(result)))
    if code == Outcome.MISMATCH:
        _raise_mismatch(call)
    if code == Outcome.BROKEN:
        call.team.raise_failure_of(result)


def _raise_mismatch(call: Call) -> NoReturn:
    """All members are here, and have made different calls: each says which, the last first."""
    tree = call.team.tree
    made: dict[int, str] = {}
    for number, what in reversed(call.team.calls.items()):
        made[number] = what[:200]
        said = _pack(made)
        if len(said) > ROOM - 300:
            break
    code, result = tree.meet(
        DESCRIBE, 0, Operation.KEEP, None, said, None, call.what, call.team.tick_at_tree
    )
    if code == Outcome.BROKEN:
        call.team.raise_failure_of(result)
    calls = [pickle.loads(one) for one in tree.cells(True)]
    if call.team.outer is None:  # all raise: nobody need be told
        call.team.begin_epoch(call.team.epoch + 1)
    try:
        call.team.compare(dict(zip(call.team.names, calls, strict=True)))
    except CollectiveMismatch as failure:
        raise call.team.known(failure) from None
    raise call.team.known(CollectiveError("the members of a group have made different calls"))


def _pack(value: Any) -> bytes:
    return pickle.dumps(value, 5)


def _cells(team: Team) -> list[Any]:
    return [pickle.loads(one) if type(one) is bytes else one for one in team.tree.cells(False)]


def _fold(call: Call, value: Any) -> Any:
    """This member came last: it combines what all have brought, and all get the result.

    What they brought are the bytes of arrays like ``value``, or other objects.
    """
    tree = call.team.tree
    try:
        if not call.array or not is_plain(value):
            values = _cells(call.team)
        else:
            import numpy as np

            shape = value.shape
            cells = tree.cells(True)
            values = [np.frombuffer(one, value.dtype).reshape(shape).copy() for one in cells]
        total = values[0]
        for part in values[1:]:
            total = call.combine(total, part)
        packed = _pack(total)
    except BaseException as failure:  # noqa: BLE001 - told to all, and raised here
        name = call.team.names[call.rank]
        told = f"{name!r} could not combine in {call.what}: {type(failure).__name__}: {failure}"
        tree.conclude(_pack(told[:1000]), True)
        raise call.team.known(failure) from None
    if not tree.conclude(packed, False):
        call.team.raise_failure_of(tree.broken_by or 0)
    if len(packed) > ROOM:  # the others are told that it found no room
        return doubling.allreduce(call, value)
    return total


def _reduce_arrays(call: Call, value: Any, out: Any) -> Any:
    import numpy as np

    assert call.op is not None
    value = np.ascontiguousarray(value).reshape(value.shape)
    given = out is not None
    if value.nbytes > ROOM:
        if is_elementwise(call.op):
            return reduce_in_area(call, meet, value, out)
        total = doubling.allreduce(call, value)
    else:
        if not given:
            out = np.empty_like(value)
        if is_plain(value):
            code, result = meet(
                call, native_codes().get(call.op, Operation.OTHER), value, None, out
            )
        else:
            code, result = meet(call, Operation.OTHER, None, _pack(value))
        total = out if code in (Outcome.INTS, Outcome.FLOATS) else settle(call, code, result, value)
    if total is not out and given:  # combined by Python
        np.copyto(out, total, casting="same_kind")
        return out
    return total
