"""Two or three levels: shared memory within each machine, messages between one representative of
each machine, and messages between one representative of each site.

The values of a machine's members are combined through flags, and those of a site's machines along a
tree, to the first member of the site. The first members of up to eight sites send to each other
directly: whatever the number and the order of the members, one message crosses between two sites in
each direction, and no crossing waits for another. Then the result is distributed in each site, down
the tree and through flags. Within one site the machines are the outermost level; their
representatives use recursive doubling.

For ``s`` sites or, within one site, ``m`` machines; messages within sites or machines not counted:

| call                                | between s <= 8 sites | depth | between m machines | depth |
|-------------------------------------|----------|---|----------------|--------------|
| barrier, allreduce, allgather, scan | s(s - 1) | 1 | m ceil(log2 m) | ceil(log2 m) |
| bcast, reduce, gather, scatter      | s - 1    | 1 | m - 1 (m <= 8) | 1            |

Between more than 8 representatives, trees and recursive doubling replace the direct messages. A
scan sends the values of all members to all members.

Values are combined in the order of ranks. A site whose members have consecutive ranks contributes
one value; so does every site if the operation is known to be commutative (NumPy's ufuncs, on
arrays). Otherwise the values of all its members are sent, still in one message, and combined in
order at each site.

Source: J. Van Iwaarden, J. Steinman, G. Blank, "A Combined Shared Memory and TCP/IP Implementation
of the SPEEDES Communications Library", sections 3.1 and 3.3 (complete reductions through each local
node 0); for sites T. Kielmann and others, "MagPIe: MPI's Collective Communication Operations for
Clustered Wide Area Systems" (1999).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from sfm_kernel.collectives import doubling, flags, linear
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.choice import LARGE
from sfm_kernel.collectives.levels import Level, Levels, joined, split
from sfm_kernel.collectives.operations import is_commutative

THREE = 3
"""Number of representatives above which a large array is reduced by recursive doubling: its bytes
then cost more than the messages."""


def barrier(call: Call) -> None:
    levels = Levels(call)
    for level in levels.inner:
        if level.rooted is flags:
            flags.barrier(level.call)
        else:
            level.rooted.gather(level.call, None, 0)
    if levels.outer is not None:
        levels.outer.rootless.barrier(levels.outer.call)
    for level in reversed(levels.inner):
        if level.rooted is flags:
            flags.barrier(level.call)
        else:
            level.rooted.bcast(level.call, None, 0)


def bcast(call: Call, value: Any, root: int) -> Any:
    levels = Levels(call)
    outer, home = levels.outer, levels.shape.home(root)
    # Between sites first: these messages then wait for no late member near the root.
    received = _from_root(call, value, levels.shape.groups[home][0], root)
    if outer is not None:
        received = outer.rooted.bcast(outer.call, received, home)
    received = _distributed(levels.inner, received)
    return value if call.rank == root else received


def reduce(call: Call, value: Any, root: int) -> Any:
    levels = Levels(call)
    shape, outer = levels.shape, levels.outer
    home = shape.home(root)
    if shape.in_order or is_commutative(call.op, call.array):
        total = _total(call, levels, value)
        if outer is not None:
            total = outer.rooted.reduce(outer.call, total, home)
    else:
        values = _collected(levels, value)
        lists = None if outer is None else outer.rooted.gather(outer.call, values, home)
        values = None if lists is None else joined(shape.groups, lists)
        total = None if values is None else functools.reduce(call.combine, values)
    return _to_root(call, total, shape.groups[home][0], root)


def allreduce(call: Call, value: Any) -> Any:
    levels = Levels(call)
    outer = levels.outer
    if levels.shape.in_order or is_commutative(call.op, call.array):
        total = _total(call, levels, value)
        if outer is not None:
            cut = call.array and value.nbytes >= LARGE and outer.call.size > THREE
            total = (doubling if cut else outer.rootless).allreduce(outer.call, total)
    else:
        values = _collected(levels, value)
        total = None
        if outer is not None:
            lists = outer.rootless.allgather(outer.call, values)
            total = functools.reduce(call.combine, joined(outer.groups, lists))
    return _distributed(levels.inner, total)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    levels = Levels(call)
    groups, outer = levels.shape.groups, levels.outer
    home = levels.shape.home(root)
    values = _collected(levels, value)
    if outer is not None:
        lists = outer.rooted.gather(outer.call, values, home)
        values = None if lists is None else joined(groups, lists)
    result: list[Any] | None = _to_root(call, values, groups[home][0], root)
    return result


def scatter(call: Call, values: Sequence[Any] | None, root: int) -> Any:
    levels = Levels(call)
    groups, outer = levels.shape.groups, levels.outer
    home = levels.shape.home(root)
    first = groups[home][0]
    rest = _from_root(call, values, first, root)
    if outer is not None:
        lists = split(groups, rest) if call.rank == first else None
        rest = outer.rooted.scatter(outer.call, lists, home)
    for level in reversed(levels.inner):
        lists = split(level.groups, rest) if level.call.rank == 0 else None
        algorithm = linear if level.rooted is flags else level.rooted
        rest = algorithm.scatter(level.call, lists, 0)
    return rest[0]


def allgather(call: Call, value: Any) -> list[Any]:
    levels = Levels(call)
    outer = levels.outer
    values = _collected(levels, value)
    if outer is not None:
        values = joined(outer.groups, outer.rootless.allgather(outer.call, values))
    result: list[Any] = _distributed(levels.inner, values)
    return result


def scan(call: Call, value: Any) -> Any:
    return functools.reduce(call.combine, allgather(call, value)[: call.rank + 1])


def _total(call: Call, levels: Levels, value: Any) -> Any:
    """The combined value of this member's site or machine, on its representative."""
    if not levels.shape.site_in_order and not is_commutative(call.op, call.array):
        values = _collected(levels, value)
        return None if values is None else functools.reduce(call.combine, values)
    for level in levels.inner:
        value = level.rooted.reduce(level.call, value, 0)
    return value


def _collected(levels: Levels, value: Any) -> list[Any] | None:
    """The values of the members of this member's site or machine, in order, on its representative;
    None on other members."""
    values: list[Any] | None = [value]
    for level in levels.inner:
        if level.rooted is flags:  # each member represents itself
            values = flags.gather(level.call, value, 0)
        else:
            lists = level.rooted.gather(level.call, values, 0)
            values = None if lists is None else joined(level.groups, lists)
    return values


def _distributed(inner: Sequence[Level], value: Any) -> Any:
    """The value of each level's first member, on all members that it represents."""
    for level in reversed(inner):
        value = level.rooted.bcast(level.call, value, 0)
    return value


def _from_root(call: Call, value: Any, first: int, root: int) -> Any:
    """Send a value from the root to the first member of its group; returns it there."""
    if call.rank == root != first:
        call.send(first, value)
    return call.recv(root) if call.rank == first != root else value


def _to_root(call: Call, value: Any, first: int, root: int) -> Any:
    """Send a value from the first member of the root's group to the root; None elsewhere."""
    if call.rank == first != root:
        call.send(root, value)
    elif call.rank == root != first:
        return call.recv(first)
    return value if call.rank == root else None
