"""Binomial tree: a member that has the value passes it to the members 1, 2, 4, … ranks further.

After step k, 2^k members have a broadcast's value; a reduction runs the same tree backwards. For
``p`` members, d = ceil(log2 p):

| call                   | messages | depth |
|------------------------|----------|-------|
| bcast, gather, scatter | p - 1    | d     |
| reduce                 | p - 1, one more if the root is not the first | d, or d + 1 |
| barrier, allreduce, allgather | 2(p - 1) | 2d |

A gather sends each value through the tree: at most d times the bytes of a linear gather, with fewer
messages at the root.

Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations
in MPICH", IJHPCA 19 (2005), sections 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfm_kernel.collectives.call import Call


def barrier(call: Call) -> None:
    gather(call, None, 0)
    bcast(call, None, 0)


def bcast(call: Call, value: Any, root: int) -> Any:
    offset = (call.rank - root) % call.size  # ranks are counted from the root
    step = _parent_step(offset, call.size)
    if offset > 0:
        value = call.recv((offset - step + root) % call.size)
    for child in _children(offset, step, call.size):
        call.send((child + root) % call.size, value)
    return value


def reduce(call: Call, value: Any, root: int) -> Any:
    # To rank 0, not to the root: each member then combines values of neighbours, in the order of
    # their ranks, and the operation need not be commutative.
    step = _parent_step(call.rank, call.size)
    total = value
    for child in reversed(_children(call.rank, step, call.size)):
        received = call.recv(child)
        total = call.combine(total, received, received if total is value else total)
    if call.rank > 0:
        call.send(call.rank - step, total)
    if root != 0 and call.rank == 0:
        call.send(root, total)
    if call.rank != root:
        return None
    return total if root == 0 else call.recv(0)


def allreduce(call: Call, value: Any) -> Any:
    return bcast(call, reduce(call, value, 0), 0)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    offset = (call.rank - root) % call.size
    step = _parent_step(offset, call.size)
    values = [value]  # of this member and its descendants, in order
    for child in reversed(_children(offset, step, call.size)):
        values += call.recv((child + root) % call.size)
    if offset > 0:
        call.send((offset - step + root) % call.size, values)
        return None
    return values[call.size - root :] + values[: call.size - root]


def scatter(call: Call, values: Sequence[Any] | None, root: int) -> Any:
    offset = (call.rank - root) % call.size
    step = _parent_step(offset, call.size)
    if offset > 0:
        rest = call.recv((offset - step + root) % call.size)
    else:
        assert values is not None
        rest = [*values[root:], *values[:root]]
    for child in _children(offset, step, call.size):
        call.send((child + root) % call.size, rest[child - offset :])
        del rest[child - offset :]
    return rest[0]


def allgather(call: Call, value: Any) -> list[Any]:
    values: list[Any] = bcast(call, gather(call, value, 0), 0)
    return values


def _parent_step(offset: int, size: int) -> int:
    """The distance to the parent: the lowest bit of the offset. For the root a power of two, at
    least ``size``."""
    return offset & -offset if offset else 1 << (size - 1).bit_length()


def _children(offset: int, step: int, size: int) -> list[int]:
    """The offsets of the children; the furthest, which passes on most, comes first."""
    steps = [1 << k for k in reversed(range(step.bit_length() - 1))]
    return [offset + child_step for child_step in steps if offset + child_step < size]
