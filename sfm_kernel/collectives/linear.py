"""Linear: the root talks with all other members, one after the other.

It is the simplest algorithm, and the naive Allreduce of the SFM paper (Example 2). For ``p``
members:

| call                    | messages   | depth            |
|-------------------------|------------|------------------|
| bcast, reduce, gather, scatter | p - 1 | p - 1 at the root |
| barrier, allreduce, allgather  | 2(p - 1) | 2(p - 1)    |
| alltoall                | p(p - 1)   | p - 1            |
| scan                    | p - 1      | p - 1            |

Source: A. Fedosov and G. Benson, "Communication with Super Flexible Messaging", Example 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfm_kernel.collectives.call import Call


def barrier(call: Call) -> None:
    gather(call, None, 0)
    bcast(call, None, 0)


def bcast(call: Call, value: Any, root: int) -> Any:
    if call.rank != root:
        return call.recv(root)
    for rank in _others(call):
        call.send(rank, value)
    return value


def reduce(call: Call, value: Any, root: int) -> Any:
    if call.rank != root:
        call.send(root, value)
        return None
    total = None
    for rank in range(call.size):  # in order: the operation need not be commutative
        operand = value if rank == root else call.recv(rank)
        # Received values may be overwritten, the caller's may not.
        into = total if rank != 1 or root != 0 else operand
        total = operand if rank == 0 else call.combine(total, operand, into)
    return total


def allreduce(call: Call, value: Any) -> Any:
    return bcast(call, reduce(call, value, 0), 0)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    if call.rank != root:
        call.send(root, value)
        return None
    return [value if rank == root else call.recv(rank) for rank in range(call.size)]


def scatter(call: Call, values: Sequence[Any] | None, root: int) -> Any:
    if call.rank != root:
        return call.recv(root)
    assert values is not None
    for rank in _others(call):
        call.send(rank, values[rank])
    return values[root]


def allgather(call: Call, value: Any) -> list[Any]:
    values: list[Any] = bcast(call, gather(call, value, 0), 0)
    return values


def alltoall(call: Call, values: Sequence[Any]) -> list[Any]:
    for rank in _others(call):
        call.send(rank, values[rank])
    return [values[rank] if rank == call.rank else call.recv(rank) for rank in range(call.size)]


def scan(call: Call, value: Any) -> Any:
    if call.rank > 0:
        before = call.recv(call.rank - 1)
        value = call.combine(before, value, before)
    if call.rank + 1 < call.size:
        call.send(call.rank + 1, value)
    return value


def _others(call: Call) -> list[int]:
    return [rank for rank in range(call.size) if rank != call.rank]
