"""The steps of the benchmark: what an engine does in one, and how long that takes at best."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from sfm_kernel.speedes import SpeedesComm

LONG_MS, SHORT_MS = 12.0, 4.0
"""What a step's busiest engine, and every other, has to do before the barrier."""

OTHERS_MS = (0.0, 2.0, 4.0, 8.0, 12.0, 16.0)
"""How much other work there is in a step."""

STEPS = 12

SLICE = 2e-3
"""Seconds of other work between two looks at the fuzzy barrier."""

PAUSE = 1e-4
"""Seconds between two looks of an engine that has nothing else to do."""

# For pictures


class Span(NamedTuple):
    """What a node did for some time, in seconds: "work", "other work" or "waiting"."""

    node: int
    what: str
    start: float
    stop: float


class Flight(NamedTuple):
    """A message: from whom, when, to whom, when it was received; seconds by one clock."""

    src: int
    sent: float
    dest: int
    received: float


# What one engine does in a step; each returns the seconds for which it only waited


def blocking(comm: SpeedesComm, own: float, other: float) -> float:
    """Work, wait for all, do the other work."""
    time.sleep(own)
    started = time.perf_counter()
    comm.barrier_sync()
    waited = time.perf_counter() - started
    time.sleep(other)
    return waited


def fuzzy(comm: SpeedesComm, own: float, other: float) -> float:
    """Work, say so, do the other work; then, if need be, wait for all."""
    time.sleep(own)
    comm.enter_fuzzy_barrier()
    done = False
    for part in slices(other):
        time.sleep(part)
        done = done or comm.exit_fuzzy_barrier()
    started = time.perf_counter()
    while not (done or comm.exit_fuzzy_barrier()):
        time.sleep(PAUSE)
    return time.perf_counter() - started


def slices(seconds: float) -> list[float]:
    """Equal parts of about ``SLICE``; none of nothing."""
    count = max(1, round(seconds / SLICE))
    return [seconds / count] * count if seconds else []


STEP: dict[str, Callable[[SpeedesComm, float, float], float]] = {
    "barrier": blocking,
    "fuzzy barrier": fuzzy,
}


def share(step: int, node: int, nodes: int, long: float, short: float) -> float:
    """What a node has to do before the barrier of this step: the busiest changes."""
    return long if step % nodes == node else short


def predicted(how: str, nodes: int, steps: int, long: float, short: float, other: float) -> float:
    """The time of one step if messages cost nothing, in the unit of the others."""
    ready = [0.0] * nodes  # when each begins its next step
    for step in range(steps):
        there = [ready[node] + share(step, node, nodes, long, short) for node in range(nodes)]
        if how == "barrier":
            ready = [max(there) + other] * nodes
        else:
            ready = [max(*there, one + other) for one in there]
    return max(ready) / steps
