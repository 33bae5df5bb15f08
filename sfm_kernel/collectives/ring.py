"""Ring: each member talks with its two neighbours only, and all channels are always busy.

An allreduce cuts the array into p chunks. In p - 1 steps each chunk travels round the ring and is
combined with every member's; in p - 1 more steps the results travel round. Each member sends
2 n (p - 1)/p of n bytes, the least possible, in 2(p - 1) steps. A broadcast sends chunks down the
chain of members: with c chunks it takes p - 2 + c steps.

| call      | messages   | depth      |
|-----------|------------|------------|
| bcast     | (p - 1)(c + 1) | p - 1 + c |
| allreduce | 2 p(p - 1) | 2(p - 1)   |
| allgather | p(p - 1)   | p - 1      |
| alltoall  | p(p - 1)   | p - 1      |

allreduce needs arrays and a ufunc, since values are cut into chunks, and each chunk is combined in
the order of the ring, from a different first member.

Sources: P. Patarasuk, X. Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of
Workstations" (2009); R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective
Communication Operations in MPICH" (2005), sections 4.1 and 4.4 (pairwise exchange).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.operations import is_array

CHUNK = 1 << 17
"""Bytes of a broadcast's chunk: large enough that the cost of a message is small."""

AHEAD = 1 << 14
"""Bytes of an array up to which alltoall sends it before its turn."""


def bcast(call: Call, value: Any, root: int) -> Any:
    import numpy as np

    offset = (call.rank - root) % call.size
    before, after = (call.rank - 1) % call.size, (call.rank + 1) % call.size
    last = offset == call.size - 1
    cut: tuple[Any, Any] | None = None
    if offset == 0:
        if is_array(value) and not value.dtype.hasobject:
            cut = value.shape, value.dtype
        call.send(after, (cut, None if cut else value))
    else:
        cut, value = call.recv(before)
        if not last:
            call.send(after, (cut, value))
        value = np.empty(*cut) if cut else value
    if cut:
        flat = np.ascontiguousarray(value).reshape(-1)
        items = max(1, CHUNK // max(1, flat.itemsize))
        for start in range(0, flat.size, items):
            chunk = flat[start : start + items]
            if offset > 0:
                chunk[:] = call.recv(before)
            if not last:
                call.send(after, chunk)
    return value


def allreduce(call: Call, value: Any) -> Any:
    import numpy as np

    total = np.array(value, order="C")
    chunks = np.array_split(total.reshape(-1), call.size)
    before, after = (call.rank - 1) % call.size, (call.rank + 1) % call.size
    for step in range(call.size - 1):
        call.send(after, chunks[(call.rank - step) % call.size])
        chunk = chunks[(call.rank - step - 1) % call.size]
        call.combine(call.recv(before), chunk, chunk)
    for step in range(call.size - 1):
        call.send(after, chunks[(call.rank + 1 - step) % call.size])
        chunks[(call.rank - step) % call.size][:] = call.recv(before)
    return total


def allgather(call: Call, value: Any) -> list[Any]:
    values = [value] * call.size
    before, after = (call.rank - 1) % call.size, (call.rank + 1) % call.size
    for step in range(call.size - 1):
        call.send(after, values[(call.rank - step) % call.size])
        values[(call.rank - step - 1) % call.size] = call.recv(before)
    return values


def alltoall(call: Call, values: Sequence[Any]) -> list[Any]:
    # Large arrays take turns, so that they fit into the memory for messages. Other values are sent
    # ahead: their receivers then need not wait for earlier turns.
    result = list(values)
    turns = [
        ((call.rank + step) % call.size, (call.rank - step) % call.size)
        for step in range(1, call.size)
    ]
    large = {dest for dest, _ in turns if is_array(values[dest]) and values[dest].nbytes > AHEAD}
    for dest, _ in turns:
        if dest not in large:
            call.send(dest, values[dest])
    for dest, source in turns:
        if dest in large:
            call.send(dest, values[dest])
        result[source] = call.recv(source)
    return result
