"""Many tasks for few workers: SFM's farm beside other pools; the time of one task.

Tasks sleep for 0, 1 or 100 ms: on a machine with fewer cores than workers, tasks that compute would
measure the cores. Each pool is used as its users do, by ``map`` over a list, once with its
defaults, and once with chunks of 1/16 of the tasks. All pools run at the same time, and take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from statistics import median

from benchmarks.pools import POOLS, SFM, absent, command
from benchmarks.verdict import Pair, verdict
from sfm_kernel.lessons.measure.arguments import at_least, names, numbers
from sfm_kernel.lessons.measure.launched import LaunchedJob
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped

TASKS = (0, 1, 100)
"""Milliseconds that a task sleeps."""

WORKERS = 4
DEFAULT, CHUNKS = "its own", "1/16 of all"
"""The number of tasks that travel together: the pool's choice, or one that knows their number."""

LIMITS = {(0, DEFAULT): 1.0, (1, DEFAULT): 1.0}
"""The largest ratio of a task's time to that in another pool. Longer tasks, and chunks that a user
has chosen well, have no target."""

MOST = 20_000


def rows(
    *,
    tasks: Sequence[int] = TASKS,
    pools: Sequence[str] = tuple(POOLS),
    workers: int = WORKERS,
    repeat: int = 5,
    seconds: float = 0.5,
) -> Iterator[Row]:
    """Measure pools of ``workers`` workers; yield a row after each measurement.

    Each of ``repeat`` rounds takes every kind of tasks through every pool that is installed, as
    many as take about ``seconds``.

    Columns: task_ms, pool, chunk (the number of tasks that travel together), workers, tasks, round,
    us (for each task, including the ``task_ms`` / ``workers`` that it sleeps).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: a pool failed.
    """
    if repeat < 1 or workers < 1 or not seconds > 0 or not tasks or min(tasks) < 0:
        raise ValueError("repeat and workers are at least 1, seconds above 0, tasks 0 ms or more")
    with ExitStack() as stack:
        installed = [pool for pool in pools if absent(pool) is None]
        started = {
            pool: stack.enter_context(LaunchedJob(pool, 1, command(pool, workers)))
            for pool in installed
        }
        counts: dict[tuple[int, str, str], int] = {}
        for number, ms, pool, chunk in product(range(repeat), tasks, installed, (DEFAULT, CHUNKS)):
            if pool == SFM and chunk == CHUNKS:
                continue  # its own choice is good
            launched, cell = started[pool], (ms, pool, chunk)
            if cell not in counts:
                counts[cell] = _count(launched, ms, workers, seconds, chunk)
            count = counts[cell]
            took = _seconds(launched, count, ms, chunk)
            about: Row = {"task_ms": ms, "pool": pool, "chunk": chunk, "workers": workers}
            yield about | {"tasks": count, "round": number, "us": 1e6 * took / count}


def _seconds(launched: LaunchedJob, count: int, ms: int, chunk: str) -> float:
    size = 0 if chunk == DEFAULT else max(1, count // 16)
    return float(launched.ask("tasks", count=count, ms=ms, chunk=size)["seconds"])


def _count(launched: LaunchedJob, ms: int, workers: int, seconds: float, chunk: str) -> int:
    """The number of tasks that take about ``seconds``; the first ones open all connections."""
    count = few = 4 * workers
    _seconds(launched, count, 0, chunk)
    while True:
        took = _seconds(launched, count, ms, chunk)
        # Not more than ten times as many at once: pools learn, and machines have bursts.
        more = max(few, min(MOST, 10 * count, int(seconds / took * count)) // few * few)
        if more < 2 * count or count >= MOST // few * few:
            return max(count, more)
        count = more


# Tables


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each kind of task and pool: the median, the fastest, and the farm's ratio to it."""
    listed: list[Row] = []
    for (ms, pool, chunk), group in grouped(measured, ("task_ms", "pool", "chunk")).items():
        times = [row["us"] for row in group]
        row: Row = {"task_ms": ms, "pool": pool, "chunk": chunk, "tasks": group[0]["tasks"]}
        listed.append(row | {"us": median(times), "fastest": min(times)})
    ours = {row["task_ms"]: row["us"] for row in listed if row["pool"] == SFM}
    for row in listed:
        if row["task_ms"] in ours:
            row["farm / it"] = ours[row["task_ms"]] / row["us"]
    return sorted(listed, key=lambda row: row["task_ms"])


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: all pools, then the targets."""
    listed = summary(measured)
    of_farm = {row["task_ms"]: row for row in listed if row["pool"] == SFM}
    targets = []
    for row in listed:
        ours = of_farm.get(row["task_ms"])
        if row["pool"].startswith("SFM") or ours is None:
            continue
        pair = Pair("", ours["us"], row["us"], ours["fastest"], row["fastest"])
        limit = LIMITS.get((row["task_ms"], row["chunk"]))
        other = row["pool"]
        if row["chunk"] != DEFAULT:
            other += f", chunks of {row['chunk']}"
        targets.append(verdict(f"tasks of {row['task_ms']} ms", limit, other, [pair]))
    return {"Time a task (µs)": listed, "Targets (times in µs)": targets}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks farm``."""
    parser.add_argument("--workers", type=at_least(1), metavar="N", help=f"default {WORKERS}")
    parser.add_argument("--tasks", type=numbers, metavar="MS,…", help="of 1, 100, … ms alone")
    parser.add_argument("--only", type=names(tuple(POOLS), "pool"), metavar="POOL,…", help="*, ?")


def notes(options: argparse.Namespace) -> list[str]:
    """A line for each pool that is left out on this machine, with what to install."""
    return [why for pool in options.only or POOLS if (why := absent(pool))]


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each length of tasks."""
    pools = options.only or tuple(POOLS)
    repeat = options.repeat or (1 if options.quick else 5)
    seconds = 0.05 if options.quick else 0.5
    measured = partial(
        rows,
        pools=pools,
        workers=options.workers or (2 if options.quick else WORKERS),
        repeat=repeat,
        seconds=seconds,
    )
    each = 10 + (repeat + 3) * 2 * len(pools) * seconds
    return [
        Part(f"{ms} ms", partial(measured, tasks=(ms,)), each, repeat)
        for ms in options.tasks or (TASKS[:2] if options.quick else TASKS)
    ]
