"""Direct: each member sends to all others at once, and no message waits for another.

It suits few members that are far from each other: no value is passed on, so that all members have
all values after the time of one message. For ``p`` members:

| call                          | messages | depth |
|-------------------------------|----------|-------|
| barrier, allreduce, allgather | p(p - 1) | 1     |

Each member combines the values in the order of ranks: the result is the same on all members, to the
last bit.

Source: the first round of J. Bruck and others, "Efficient Algorithms for All-to-All Communications
in Multiport Message-Passing Systems" (1997), with p - 1 ports.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.collectives.call import Call


def barrier(call: Call) -> None:
    allgather(call, None)


def allreduce(call: Call, value: Any) -> Any:
    total, *others = allgather(call, value)
    for other in others:  # received values may be overwritten, the caller's may not
        total = call.combine(total, other, other if total is value else total)
    return total


def allgather(call: Call, value: Any) -> list[Any]:
    others = [rank for rank in range(call.size) if rank != call.rank]
    for rank in others:
        call.send(rank, value)
    values = {rank: call.recv(rank) for rank in others} | {call.rank: value}
    return [values[rank] for rank in range(call.size)]
