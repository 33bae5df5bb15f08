"""Recursive doubling: in step k each member talks with the member 2^k ranks away.

For ``p`` members, d = ceil(log2 p):

| call      | messages  | depth | name in the literature |
|-----------|-----------|-------|------------------------|
| barrier   | p d       | d     | dissemination          |
| allreduce | p log2 p  | d, or d + 1 if p is no power of two | recursive doubling |
| allgather | p d       | d     | Bruck                  |
| scan      | about p d | d     | recursive doubling     |

Sources: D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization" (1988);
J. Bruck and others, "Efficient Algorithms for All-to-All Communications in Multiport
Message-Passing Systems" (1997); R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
Communication Operations in MPICH" (2005), section 4.5; W. D. Hillis, G. L. Steele, "Data Parallel
Algorithms" (1986), for scan.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.collectives.call import Call


def barrier(call: Call) -> None:
    step = 1
    while step < call.size:
        call.send((call.rank + step) % call.size)
        call.recv((call.rank - step) % call.size)
        step *= 2


def allreduce(call: Call, value: Any) -> Any:
    total, position, ranks = fold_in(call, value)
    step = 1
    while position is not None and step < len(ranks):
        other = position ^ step
        call.send(ranks[other], total)
        received = call.recv(ranks[other])
        pair = (total, received) if other > position else (received, total)
        total = call.combine(*pair, received)
        step *= 2
    return fold_out(call, total)


def allgather(call: Call, value: Any) -> list[Any]:
    values = [value]  # of this member and the members of the next ranks
    step = 1
    while step < call.size:
        call.send((call.rank - step) % call.size, values[: call.size - step])
        values += call.recv((call.rank + step) % call.size)
        step *= 2
    return values[call.size - call.rank :] + values[: call.size - call.rank]


def scan(call: Call, value: Any) -> Any:
    step = 1
    while step < call.size:
        if call.rank + step < call.size:
            call.send(call.rank + step, value)
        if call.rank >= step:
            before = call.recv(call.rank - step)
            value = call.combine(before, value, before)
        step *= 2
    return value


def fold_in(call: Call, value: Any) -> tuple[Any, int | None, list[int]]:
    """Reduce the number of members to a power of two: the first few members form pairs, and in each
    pair one member gives its value to the other.

    Returns the total so far, this member's position among the active members (None if it is not
    active), and the ranks of the active members.
    """
    most = 1 << (call.size.bit_length() - 1)
    pairs = call.size - most
    active = [2 * pair + 1 for pair in range(pairs)] + list(range(2 * pairs, call.size))
    if call.rank >= 2 * pairs:
        return value, call.rank - pairs, active
    if call.rank % 2 == 0:
        call.send(call.rank + 1, value)
        return None, None, active
    before = call.recv(call.rank - 1)
    return call.combine(before, value, before), call.rank // 2, active


def fold_out(call: Call, total: Any) -> Any:
    """Give the result to the members that were not active."""
    pairs = call.size - (1 << (call.size.bit_length() - 1))
    if call.rank >= 2 * pairs:
        return total
    if call.rank % 2 == 0:
        return call.recv(call.rank + 1)
    call.send(call.rank - 1, total)
    return total
