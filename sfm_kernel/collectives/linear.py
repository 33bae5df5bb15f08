"""Linear: the root talks with every other member, one after the other.

The simplest of all, and the naive Allreduce of the SFM paper (Example 2). ``p`` members:

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
    for place in _others(call):
        call.send(place, value)
    return value


def reduce(call: Call, value: Any, root: int) -> Any:
    if call.rank != root:
        call.send(root, value)
        return None
    total = None
    for place in range(call.size):  # in their order: the operation need not be commutative
        part = value if place == root else call.recv(place)
        # What was received may be written to; the own value is the caller's.
        into = total if place != 1 or root != 0 else part
        total = part if place == 0 else call.combine(total, part, into)
    return total


def allreduce(call: Call, value: Any) -> Any:
    return bcast(call, reduce(call, value, 0), 0)


def gather(call: Call, value: Any, root: int) -> list[Any] | None:
    if call.rank != root:
        call.send(root, value)
        return None
    return [value if place == root else call.recv(place) for place in range(call.size)]


def scatter(call: Call, values: Sequence[Any] | None, root: int) -> Any:
    if call.rank != root:
        return call.recv(root)
    assert values is not None
    for place in _others(call):
        call.send(place, values[place])
    return values[root]


def allgather(call: Call, value: Any) -> list[Any]:
    whole: list[Any] = bcast(call, gather(call, value, 0), 0)
    return whole


def alltoall(call: Call, values: Sequence[Any]) -> list[Any]:
    for place in _others(call):
        call.send(place, values[place])
    return [values[place] if place == call.rank else call.recv(place) for place in range(call.size)]


def scan(call: Call, value: Any) -> Any:
    if call.rank > 0:
        before = call.recv(call.rank - 1)
        value = call.combine(before, value, before)
    if call.rank + 1 < call.size:
        call.send(call.rank + 1, value)
    return value


def _others(call: Call) -> list[int]:
    return [place for place in range(call.size) if place != call.rank]
