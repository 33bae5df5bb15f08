"""Direct: everybody tells everybody at once, and nobody waits for what another has still to hear.

For few members a long way from each other: nothing is passed on, so that all know all after the
time of one message. ``p`` members:

| call                          | messages | depth |
|-------------------------------|----------|-------|
| barrier, allreduce, allgather | p(p - 1) | 1     |

Each member combines what all have sent, in their order: the result is the same everywhere, to the
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
    for part in others:  # the own value is the caller's, and what was received may be written to
        total = call.combine(total, part, part if total is value else total)
    return total


def allgather(call: Call, value: Any) -> list[Any]:
    others = [place for place in range(call.size) if place != call.rank]
    for place in others:
        call.send(place, value)
    values = {place: call.recv(place) for place in others} | {call.rank: value}
    return [values[place] for place in range(call.size)]
