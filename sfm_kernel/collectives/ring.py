"""Ring: everybody talks with his two neighbours only, and all links are busy all the time.

An allreduce cuts the array into p parts. In p - 1 steps each part goes round and collects what
every member has; in p - 1 more it goes round once again, whole. Each member sends 2 n (p - 1)/p of
n bytes, the least that is possible, for 2(p - 1) steps. A broadcast sends pieces down the chain of
members: with c pieces it takes p - 2 + c steps.

| call      | messages   | depth      |
|-----------|------------|------------|
| bcast     | (p - 1)(c + 1) | p - 1 + c |
| allreduce | 2 p(p - 1) | 2(p - 1)   |
| allgather | p(p - 1)   | p - 1      |
| alltoall  | p(p - 1)   | p - 1      |

allreduce needs arrays and a ufunc, since values are cut, and combined from whoever comes first
round the ring.

Sources: P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
Workstations" (2009); R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
Communication Operations in MPICH" (2005), sections 4.1 and 4.4 (pairwise exchange).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.operations import is_array

PIECE = 1 << 17
"""Bytes of a broadcast's piece: large enough that a message costs little beside its bytes."""

AHEAD = 1 << 14
"""Bytes of an array up to which an alltoall sends it before its turn."""


def bcast(call: Call, value: Any, root: int) -> Any:
    import numpy as np

    own = (call.rank - root) % call.size
    before, after = (call.rank - 1) % call.size, (call.rank + 1) % call.size
    last = own == call.size - 1
    cut: tuple[Any, Any] | None = None
    if own == 0:
        if is_array(value) and not value.dtype.hasobject:
            cut = value.shape, value.dtype
        call.send(after, (cut, None if cut else value))
    else:
        cut, whole = call.recv(before)
        if not last:
            call.send(after, (cut, whole))
        value = np.empty(*cut) if cut else whole
    if cut:
        flat = np.ascontiguousarray(value).reshape(-1)
        items = max(1, PIECE // max(1, flat.itemsize))
        for start in range(0, flat.size, items):
            piece = flat[start : start + items]
            if own > 0:
                piece[:] = call.recv(before)
            if not last:
                call.send(after, piece)
    return value


def allreduce(call: Call, value: Any) -> Any:
    import numpy as np

    total = np.array(value, order="C")
    parts = np.array_split(total.reshape(-1), call.size)
    before, after = (call.rank - 1) % call.size, (call.rank + 1) % call.size
    for step in range(call.size - 1):
        call.send(after, parts[(call.rank - step) % call.size])
        mine = parts[(call.rank - step - 1) % call.size]
        call.combine(call.recv(before), mine, mine)
    for step in range(call.size - 1):
        call.send(after, parts[(call.rank + 1 - step) % call.size])
        parts[(call.rank - step) % call.size][:] = call.recv(before)
    return total


def allgather(call: Call, value: Any) -> list[Any]:
    values = [value] * call.size
    before, after = (call.rank - 1) % call.size, (call.rank + 1) % call.size
    for step in range(call.size - 1):
        call.send(after, values[(call.rank - step) % call.size])
        values[(call.rank - step - 1) % call.size] = call.recv(before)
    return values


def alltoall(call: Call, values: Sequence[Any]) -> list[Any]:
    # Large arrays take turns, so that the memory for messages holds them. All else is sent ahead:
    # whoever waits for it then does not wait for those whose turn comes before.
    result = list(values)
    turns = [
        ((call.rank + step) % call.size, (call.rank - step) % call.size)
        for step in range(1, call.size)
    ]
    waiting = {to for to, _ in turns if is_array(values[to]) and values[to].nbytes > AHEAD}
    for to, _ in turns:
        if to not in waiting:
            call.send(to, values[to])
    for to, of in turns:
        if to in waiting:
            call.send(to, values[to])
        result[of] = call.recv(of)
    return result
