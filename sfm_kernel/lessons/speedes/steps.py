"""The steps of the benchmark: what an engine does in one, and how long that takes at best."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from sfm_kernel.speedes import SpeedesComm

LONG_MS, SHORT_MS = 12.0, 4.0
"""Milliseconds of work before the barrier: of a step's busiest engine, and of the others."""

OTHERS_MS = (0.0, 2.0, 4.0, 8.0, 12.0, 16.0)
"""Milliseconds of other work in a step."""

STEPS = 12

SLICE = 2e-3
"""Seconds of other work between two tests of the fuzzy barrier."""

PAUSE = 1e-4
"""Seconds between two tests of the fuzzy barrier without other work."""

# For plots


class Span(NamedTuple):
    """A time in which a node did one thing: "work", "other work" or "waiting"; in seconds."""

    node: int
    what: str
    start: float
    stop: float


class Flight(NamedTuple):
    """A message: its sender, when it was sent, its receiver, when it arrived; by one clock."""

    src: int
    sent: float
    dest: int
    received: float


# One engine's step; each function returns the seconds for which the engine only waited


def blocking(comm: SpeedesComm, work: float, other: float) -> float:
    """Work, wait for all, do the other work."""
    time.sleep(work)
    started = time.perf_counter()
    comm.barrier_sync()
    waited = time.perf_counter() - started
    time.sleep(other)
    return waited


def fuzzy(comm: SpeedesComm, work: float, other: float) -> float:
    """Work, enter the barrier, do the other work; then, if necessary, wait for all."""
    time.sleep(work)
    comm.enter_fuzzy_barrier()
    done = False
    for seconds in slices(other):
        time.sleep(seconds)
        done = done or comm.exit_fuzzy_barrier()
    started = time.perf_counter()
    while not (done or comm.exit_fuzzy_barrier()):
        time.sleep(PAUSE)
    return time.perf_counter() - started


def slices(seconds: float) -> list[float]:
    """Equal slices of about ``SLICE``; none for 0 seconds."""
    count = max(1, round(seconds / SLICE))
    return [seconds / count] * count if seconds else []


STEP: dict[str, Callable[[SpeedesComm, float, float], float]] = {
    "barrier": blocking,
    "fuzzy barrier": fuzzy,
}


def share(step: int, node: int, nodes: int, long: float, short: float) -> float:
    """A node's work before the barrier of this step: the busiest node changes from step to step."""
    return long if step % nodes == node else short


def predicted(how: str, nodes: int, steps: int, long: float, short: float, other: float) -> float:
    """The time of one step if messages cost nothing, in the unit of the others."""
    ready = [0.0] * nodes  # when each begins its next step
    for step in range(steps):
        entered = [ready[node] + share(step, node, nodes, long, short) for node in range(nodes)]
        if how == "barrier":
            ready = [max(entered) + other] * nodes
        else:
            ready = [max(*entered, end + other) for end in entered]
    return max(ready) / steps
