"""Binomial tree: whoever has it passes it on to who is 1, 2, 4, … places further.

After step k, 2^k members have a broadcast's value; a reduction runs the same tree backwards. ``p``
members, d = ceil(log2 p):

| call                   | messages | depth |
|------------------------|----------|-------|
| bcast, gather, scatter | p - 1    | d     |
| reduce                 | p - 1, one more if the root is not the first | d, or d + 1 |
| barrier, allreduce, allgather | 2(p - 1) | 2d |

A gather carries each value along its whole way to the root: d times the bytes of a linear one at
most, for fewer messages at the root.

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
    own = (call.rank - root) % call.size  # counted from the root
    step = _parent_step(own, call.size)
    if own > 0:
        value = call.recv((own - step + root) % call.size)
    for child in _children(own, step, call.size):
        call.send((child + root) % call.size, value)
    return value


def reduce(call: Call, value: Any, root: int) -> Any:
    # To place 0, not to the root: so each member has the values of neighbours to combine, in
    # their order, and the operation need not be commutative.
    step = _parent_step(call.rank, call.size)
    total = value
    for child in reversed(_children(call.rank, step, call.size)):
        part = call.recv(child)
        total = call.combine(total, part, part if total is value else total)
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
    own = (call.rank - root) % call.size
    step = _parent_step(own, call.size)
    mine = [value]  # of this member and those behind it, in order
    for child in reversed(_children(own, step, call.size)):
        mine += call.recv((child + root) % call.size)
    if own > 0:
        call.send((own - step + root) % call.size, mine)
        return None
    return mine[call.size - root :] + mine[: call.size - root]


def scatter(call: Call, values: Sequence[Any] | None, root: int) -> Any:
    own = (call.rank - root) % call.size
    step = _parent_step(own, call.size)
    if own > 0:
        mine = call.recv((own - step + root) % call.size)
    else:
        assert values is not None
        mine = [*values[root:], *values[:root]]
    for child in _children(own, step, call.size):
        call.send((child + root) % call.size, mine[child - own :])
        del mine[child - own :]
    return mine[0]


def allgather(call: Call, value: Any) -> list[Any]:
    whole: list[Any] = bcast(call, gather(call, value, 0), 0)
    return whole


def _parent_step(own: int, size: int) -> int:
    """How far the parent is: the lowest bit of the place. For place 0 a power of two >= size."""
    return own & -own if own else 1 << (size - 1).bit_length()


def _children(own: int, step: int, size: int) -> list[int]:
    """The children, the furthest (who has most to pass on) first."""
    steps = [1 << k for k in reversed(range(step.bit_length() - 1))]
    return [own + one for one in steps if own + one < size]
