"""The fuzzy barrier: how much of an imbalance it hides, compared with a barrier that blocks.

Engines work in steps, and none may begin a step before all have finished the last one. In each step
a different engine has more to do than the others. Every engine also has other work, on which no
engine depends. With a blocking barrier an engine does it after the barrier; with a fuzzy barrier,
between entering the barrier and leaving it. So it takes no additional time while the engine would
only wait.

An engine's work is a sleep, so that each behaves as if it had a core of its own.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 2.2.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

from sfm_kernel.lessons.measure.arguments import above_zero, at_least
from sfm_kernel.lessons.measure.engines import START_SECONDS, chosen_engines, driving, serve_jobs
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.speedes.steps import (
    LONG_MS,
    OTHERS_MS,
    SHORT_MS,
    STEP,
    STEPS,
    predicted,
    share,
)
from sfm_kernel.speedes import SpeedesComm, start_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

GROUP = 1 << 20
"""The number of the benchmark's first group: a user's groups in the same world are below it."""


# The program that every engine runs


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Do the steps that home asks for, until it says stop. Runs on every engine."""
    with ExitStack() as stack:
        groups: dict[int, SpeedesComm] = {}

        def take(job: Message) -> Mapping[str, Any]:
            if job.engines not in groups:
                nodes = range(job.engines)
                comm = start_up(sfm, group_id=GROUP + job.engines, nodes=nodes)
                groups[job.engines] = stack.enter_context(comm)
            return take_steps(groups[job.engines], job)

        serve_jobs(sfm, "speedes", take, home)


def take_steps(comm: SpeedesComm, job: Message) -> Mapping[str, Any]:
    """Do all steps of a job; return the time of the slowest node, and the sum of all waiting."""
    me, nodes, waited = comm.get_node_id(), comm.get_num_nodes(), 0.0
    comm.barrier_sync()
    started = time.perf_counter()
    for step in range(job.steps):
        work = share(step, me, nodes, job.long, job.short)
        waited += STEP[job.how](comm, work, job.other)
    seconds = comm.global_max(time.perf_counter() - started)
    return {"seconds": seconds, "waited": comm.global_sum(waited)}


# The measurement, driven from home


def rows(
    engines: int | None = None,
    *,
    home: Endpoint | None = None,
    others_ms: Sequence[float] = OTHERS_MS,
    long_ms: float = LONG_MS,
    short_ms: float = SHORT_MS,
    steps: int = STEPS,
    repeat: int = 3,
) -> Iterator[Row]:
    """Measure both barriers with growing amounts of other work; yield a row after each.

    Without ``home``, local processes are started (4 by default). With it (the endpoint of a
    notebook), the engines of its world are used (all by default), which must run ``serve(sfm)``.
    Repeats are interleaved: each round measures every configuration once.

    Columns: how ("barrier", "fuzzy barrier"), engines, other_ms, round, step_ms (the time of a
    step), predicted_ms (if messages cost nothing), waiting_percent (of the engines' time).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, or one of them failed.
    """
    engines, available = chosen_engines("speedes", engines, home)
    if steps < 1 or repeat < 1 or not others_ms or min(others_ms) < 0:
        raise ValueError(
            f"steps {steps}, repeat {repeat}: 1 at least; others_ms {list(others_ms)}: 0 or more"
        )
    if not 0 <= short_ms <= long_ms or long_ms == 0:
        raise ValueError(f"short_ms {short_ms} is 0 or more and at most long_ms {long_ms}")
    with driving("speedes", serve, available, home) as ask:
        work = {"long": long_ms / 1e3, "short": short_ms / 1e3, "engines": engines}
        for how in STEP:  # not measured: the first messages open channels
            ask(timeout=START_SECONDS, how=how, steps=1, other=0.0, **work)
        for number in range(repeat):
            for other_ms, how in product(others_ms, STEP):
                done = ask(how=how, steps=steps, other=other_ms / 1e3, **work)
                yield {
                    "how": how,
                    "engines": engines,
                    "other_ms": other_ms,
                    "round": number,
                    "step_ms": done.seconds / steps * 1e3,
                    "predicted_ms": predicted(how, engines, steps, long_ms, short_ms, other_ms),
                    "waiting_percent": 100 * done.waited / (done.seconds * engines),
                }


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each amount of other work and barrier: medians over the rounds."""
    keys = ("other_ms", "how", "engines")
    return [
        dict(zip(keys, key, strict=True))
        | {
            "step_ms": median(row["step_ms"] for row in group),
            "predicted_ms": group[0]["predicted_ms"],
            "waiting_percent": median(row["waiting_percent"] for row in group),
        }
        for key, group in grouped(measured, keys).items()
    ]


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons speedes``."""
    parser.add_argument("--engines", type=at_least(1), default=4, metavar="N")
    parser.add_argument("--steps", type=at_least(1), metavar="S", help="steps of a measurement")
    parser.add_argument("--long", type=above_zero, default=LONG_MS, metavar="MS")
    parser.add_argument("--short", type=above_zero, default=SHORT_MS, metavar="MS")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each amount of other work."""
    repeat = options.repeat or (1 if options.quick else 3)
    measured = partial(
        rows,
        options.engines,
        long_ms=max(options.long, options.short),
        short_ms=min(options.long, options.short),
        steps=options.steps or (4 if options.quick else STEPS),
        repeat=repeat,
    )
    return [
        Part(f"{ms:g} ms", partial(measured, others_ms=(ms,)), 1 + repeat / 2, repeat)
        for ms in (OTHERS_MS[::2] if options.quick else OTHERS_MS)
    ]


def plot(measured: Sequence[Row]) -> Figure:
    """The time of a step, and the share of waiting in it, against the other work."""
    from sfm_kernel.lessons.speedes.plots import StepTime, Waiting
    from sfm_kernel.plots import still

    others_ms = {row["other_ms"] for row in measured}
    return still(measured, StepTime.of(measured), Waiting(others_ms))
