"""Two levels, or three: memory inside each machine, messages between one representative of each;
and of the machines of each site one that talks with the other sites.

What the members of a machine have is brought together through flags, and what the machines of a
site have along a tree, to the first member of the site. The first members of all sites tell each
other directly, up to eight of them: whatever the number and the order of the members, the way
between two sites is crossed by one message each way, and no message waits for another to cross it.
Then each site learns the result, down the tree and through flags. With one site the machines are
the outermost level; their representatives go by recursive doubling.

``s`` sites or, in one site, ``m`` machines; messages beside those within sites, or machines:

| call                                | between s <= 8 sites | depth | between m machines | depth |
|-------------------------------------|----------|---|----------------|--------------|
| barrier, allreduce, allgather, scan | s(s - 1) | 1 | m ceil(log2 m) | ceil(log2 m) |
| bcast, reduce, gather, scatter      | s - 1    | 1 | m - 1 (m <= 8) | 1            |

Between more than 8, trees and recursive doubling take the place of what is direct. A scan carries
what all members have to all of them.

Values are combined in the order of the members. A site whose members are neighbours in that order
contributes one value; so does any other, where the operation is known to be commutative (NumPy's
ufuncs, on arrays). Else what all its members have is carried, still in one message, and combined
in order at each site.

Source: J. Van Iwaarden, J. Steinman, G. Blank, "A Combined Shared Memory and TCP/IP Implementation
of the SPEEDES Communications Library", sections 3.1 and 3.3 (complete reductions through each local
node 0); for sites T. Kielmann and others, "MagPIe: MPI's Collective Communication Operations for
Clustered Wide Area Systems" (1999).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfm_kernel.collectives import doubling, flags, linear
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.choice import LARGE
from sfm_kernel.collectives.levels import Level, Levels, joined, split
from sfm_kernel.collectives.operations import is_commutative

THREE = 3
"""Representatives from which on a large array goes by recursive doubling: its bytes count more than
the time that a message takes."""


def barrier(call: Call) -> None:
    levels = Levels(call)
    for level in levels.inner:
        if level.one is flags:
            flags.barrier(level.call)
        else:
            level.one.gather(level.call, None, 0)
    if levels.outer is not None:
        levels.outer.all.barrier(levels.outer.call)
    for level in reversed(levels.inner):
        if level.one is flags:
            flags.barrier(level.call)
        else:
            level.one.bcast(level.call, None, 0)


def bcast(call: Call, value: Any, root: int) -> Any:
    levels = Levels(call)
    outer, home = levels.outer, levels.shape.home(root)
    # The long way first: it waits for nobody who is near the root and comes late.
    got = _from_root(call, value, levels.shape.groups[home][0], root)
    if outer is not None:
        got = outer.one.bcast(outer.call, got, home)
    got = _passed_on(levels.inner, got)
    return value if call.rank == root else got


def reduce(call: Call, value: Any, root: int) -> Any:
    levels = Levels(call)
    shape, outer = levels.shape, levels.outer
    home = shape.home(root)
    if shape.in_order or is_commutative(call.op, call.array):
        total = _total(call, levels, value)
        if outer is not None:
            total = outer.one.reduce(outer.call, total, home)
    else:
        values = _collected(levels, value)
        parts = None if outer is None else outer.one.gather(outer.call, values, home)
        total = None if parts is None else _folded(call, joined(shape.groups, parts))
    return _to_root(call, total, shape.groups[home][0], root)


def allreduce(call: Call, value: Any) -> Any:
    levels = Levels(call)
    outer = levels.outer
    if levels.shape.in_order or is_commutative(call.op, call.array):
        total = _total(call, levels, value)
        if outer is not None:
            cut = call.array and value.nbytes >= LARGE and outer.call.size > THREE
            total = (doubling if cut else outer.all).allreduce(outer.call, total)
    else:
        values = _collected(levels, value)
        total = None
        if outer is not None:
            parts = outer.all.allgather(outer.call, values)
            total = _folded(call, joined(outer.groups, parts))
    return _passed_on(levels.inner, total)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    levels = Levels(call)
    groups, outer = levels.shape.groups, levels.outer
    home = levels.shape.home(root)
    values = _collected(levels, value)
    if outer is not None:
        parts = outer.one.gather(outer.call, values, home)
        values = None if parts is None else joined(groups, parts)
    whole: list[Any] | None = _to_root(call, values, groups[home][0], root)
    return whole


def scatter(call: Call, values: Sequence[Any] | None, root: int) -> Any:
    levels = Levels(call)
    groups, outer = levels.shape.groups, levels.outer
    home = levels.shape.home(root)
    first = groups[home][0]
    mine = _from_root(call, values, first, root)
    if outer is not None:
        parts = split(groups, mine) if call.rank == first else None
        mine = outer.one.scatter(outer.call, parts, home)
    for level in reversed(levels.inner):
        parts = split(level.groups, mine) if level.call.rank == 0 else None
        how = linear if level.one is flags else level.one
        mine = how.scatter(level.call, parts, 0)
    return mine[0]


def allgather(call: Call, value: Any) -> list[Any]:
    levels = Levels(call)
    outer = levels.outer
    values = _collected(levels, value)
    if outer is not None:
        values = joined(outer.groups, outer.all.allgather(outer.call, values))
    whole: list[Any] = _passed_on(levels.inner, values)
    return whole


def scan(call: Call, value: Any) -> Any:
    return _folded(call, allgather(call, value)[: call.rank + 1])


def _total(call: Call, levels: Levels, value: Any) -> Any:
    """What this member's site, or machine, has, combined; on who speaks for it."""
    if not levels.shape.in_order_here and not is_commutative(call.op, call.array):
        values = _collected(levels, value)
        return None if values is None else _folded(call, values)
    for level in levels.inner:
        value = level.one.reduce(level.call, value, 0)
    return value


def _collected(levels: Levels, value: Any) -> list[Any] | None:
    """What the members of this one's site, or machine, have, in their order; on who speaks for it.

    None elsewhere.
    """
    values: list[Any] | None = [value]
    for level in levels.inner:
        if level.one is flags:  # each speaks for itself
            values = flags.gather(level.call, value, 0)
        else:
            parts = level.one.gather(level.call, values, 0)
            values = None if parts is None else joined(level.groups, parts)
    return values


def _folded(call: Call, values: list[Any]) -> Any:
    total, *others = values
    for part in others:
        total = call.combine(total, part)
    return total


def _passed_on(inner: Sequence[Level], value: Any) -> Any:
    """What the first member of each level has, to those for whom it speaks."""
    for level in reversed(inner):
        value = level.one.bcast(level.call, value, 0)
    return value


def _from_root(call: Call, value: Any, first: int, root: int) -> Any:
    """From the root to the first member of its group."""
    if call.rank == root != first:
        call.send(first, value)
    return call.recv(root) if call.rank == first != root else value


def _to_root(call: Call, value: Any, first: int, root: int) -> Any:
    """From the first member of the root's group to the root; None elsewhere."""
    if call.rank == first != root:
        call.send(root, value)
    elif call.rank == root != first:
        return call.recv(first)
    return value if call.rank == root else None
