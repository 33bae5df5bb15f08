"""Rabenseifner's allreduce, for large arrays.

Recursive halving: in each step a member gives half of what it still works on to another, and
combines the other half with what that one gives. After log2 p steps everybody has the result of one
part of p. Recursive doubling then collects the parts. Each member sends 2 n (p - 1)/p of n bytes
in 2 log2 p messages: the ring's bytes in a tree's steps. Where p is no power of two, 2(p - 2^k)
members pair up first, for one step more at each end.

| call      | messages  | depth    |
|-----------|-----------|----------|
| allreduce | 2 p log2 p | 2 log2 p |

Arrays and ufuncs only: the values are cut.

Source: R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.doubling import fold_in, fold_out


def allreduce(call: Call, value: Any) -> Any:
    import numpy as np

    total, place, places = fold_in(call, value)
    if place is None:
        return fold_out(call, None)
    total = np.array(total, order="C")  # the caller's own stays as it is
    flat = total.reshape(-1)
    cuts = [flat.size * nth // len(places) for nth in range(len(places) + 1)]
    low, high = 0, len(places)  # the parts that this member still works on
    step = len(places) // 2
    while step >= 1:
        other, middle = place ^ step, (low + high) // 2
        keep, give = (low, middle), (middle, high)
        if place & step:
            keep, give = give, keep
        call.send(places[other], flat[cuts[give[0]] : cuts[give[1]]])
        part = call.recv(places[other])
        mine = flat[cuts[keep[0]] : cuts[keep[1]]]
        if other > place:
            call.combine(mine, part, mine)
        else:
            call.combine(part, mine, mine)
        (low, high), step = keep, step // 2
    step = 1
    while step < len(places):
        other = place ^ step
        theirs = (low ^ step, (low ^ step) + step)
        call.send(places[other], flat[cuts[low] : cuts[high]])
        flat[cuts[theirs[0]] : cuts[theirs[1]]] = call.recv(places[other])
        low, high = min(low, theirs[0]), max(high, theirs[1])
        step *= 2
    return fold_out(call, total)
