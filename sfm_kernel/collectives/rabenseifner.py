"""Rabenseifner's allreduce, for large arrays.

Recursive halving: in each step a member sends half of its current range to a partner, and combines
the other half with the half that the partner sends. After log2 p steps each member has the result
of one of p chunks. Recursive doubling then collects the chunks. Each member sends 2 n (p - 1)/p of
n bytes in 2 log2 p messages: the ring's bytes in a tree's steps. If p is no power of two,
2(p - 2^k) members pair up first, for one more step at each end.

| call      | messages  | depth    |
|-----------|-----------|----------|
| allreduce | 2 p log2 p | 2 log2 p |

It needs arrays and a ufunc, since values are cut into chunks.

Source: R. Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
"""

from __future__ import annotations

from typing import Any

from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.doubling import fold_in, fold_out


def allreduce(call: Call, value: Any) -> Any:
    import numpy as np

    total, position, ranks = fold_in(call, value)
    if position is None:
        return fold_out(call, None)
    total = np.array(total, order="C")  # a copy: the caller's array is unchanged
    flat = total.reshape(-1)
    cuts = [flat.size * chunk // len(ranks) for chunk in range(len(ranks) + 1)]
    low, high = 0, len(ranks)  # the chunks in this member's current range
    step = len(ranks) // 2
    while step >= 1:
        other, middle = position ^ step, (low + high) // 2
        keep, give = (low, middle), (middle, high)
        if position & step:
            keep, give = give, keep
        call.send(ranks[other], flat[cuts[give[0]] : cuts[give[1]]])
        received = call.recv(ranks[other])
        kept = flat[cuts[keep[0]] : cuts[keep[1]]]
        if other > position:
            call.combine(kept, received, kept)
        else:
            call.combine(received, kept, kept)
        (low, high), step = keep, step // 2
    step = 1
    while step < len(ranks):
        other = position ^ step
        start = low ^ step  # of the partner's range, which has the same length
        call.send(ranks[other], flat[cuts[low] : cuts[high]])
        flat[cuts[start] : cuts[start + step]] = call.recv(ranks[other])
        low, high = min(low, start), max(high, start + step)
        step *= 2
    return fold_out(call, total)
