"""Recursive doubling: in step k everybody talks with who is 2^k places away.

``p`` members, d = ceil(log2 p):

| call      | messages  | depth | name in the literature |
|-----------|-----------|-------|------------------------|
| barrier   | p d       | d     | dissemination          |
| allreduce | p log2 p  | d, or d + 1 where p is no power of two | recursive doubling |
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
    total, place, places = fold_in(call, value)
    step = 1
    while place is not None and step < len(places):
        other = place ^ step
        part = call.exchange(places[other], total)
        total = ordered(call, total, part, other > place)
        step *= 2
    return fold_out(call, total)


def allgather(call: Call, value: Any) -> list[Any]:
    mine = [value]  # of this member and those behind it
    step = 1
    while step < call.size:
        call.send((call.rank - step) % call.size, mine[: call.size - step])
        mine += call.recv((call.rank + step) % call.size)
        step *= 2
    return mine[call.size - call.rank :] + mine[: call.size - call.rank]


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
    """Leave a power of two of members: of the first few pairs, one gives what it has to the other.

    Returns the total so far, the place among those that go on (None for who does not), and the
    places in the group of those.
    """
    most = 1 << (call.size.bit_length() - 1)
    pairs = call.size - most
    going_on = [2 * nth + 1 for nth in range(pairs)] + list(range(2 * pairs, call.size))
    if call.rank >= 2 * pairs:
        return value, call.rank - pairs, going_on
    if call.rank % 2 == 0:
        call.send(call.rank + 1, value)
        return None, None, going_on
    before = call.recv(call.rank - 1)
    return call.combine(before, value, before), call.rank // 2, going_on


def fold_out(call: Call, total: Any) -> Any:
    """Give the result to those who gave away what they had."""
    pairs = call.size - (1 << (call.size.bit_length() - 1))
    if call.rank >= 2 * pairs:
        return total
    if call.rank % 2 == 0:
        return call.recv(call.rank + 1)
    call.send(call.rank - 1, total)
    return total


def ordered(call: Call, own: Any, part: Any, part_is_higher: bool) -> Any:
    """Combine with what a member has sent, in the order of the places."""
    return call.combine(own, part, part) if part_is_higher else call.combine(part, own, part)
