"""Many tasks for few workers: SFM's farm beside other pools; the time that one task costs.

Tasks sleep for 0, 1 or 100 ms: on a machine with fewer cores than workers, tasks that compute would
measure the cores. Each pool is driven as its users do, ``map`` over a list, once with its own
defaults, and, where it has an option for that, with chunks of 1/16 of the tasks. All pools are
there at the same time, and take turns.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from statistics import median

from sfm_kernel.bench.arguments import at_least, names, numbers
from sfm_kernel.bench.others.crew import Crew
from sfm_kernel.bench.others.pools import POOLS, SFM, absent, command
from sfm_kernel.bench.rows import Row, grouped
from sfm_kernel.bench.targets import Pair, verdict

TASKS = (0, 1, 100)
"""Milliseconds that a task sleeps."""

WORKERS = 4
LIMITS = {0: 1.0, 1: 1.0}
"""What a task may cost, in another pool's; longer tasks are stated."""

OWN, CHUNKS = "its own", "1/16 of all"
MOST = 20_000


def rows(
    *,
    tasks: Sequence[int] = TASKS,
    pools: Sequence[str] = tuple(POOLS),
    workers: int = WORKERS,
    repeat: int = 5,
    seconds: float = 0.5,
) -> Iterator[Row]:
    """Measure pools of so many workers; yield a row after each measurement.

    Each of ``repeat`` rounds takes every kind of tasks through every pool that is installed, as
    many as take about ``seconds``.

    Columns: task_ms, pool, chunk (who has chosen how many tasks travel together), workers, tasks,
    round, us (for each task; ``task_ms`` / ``workers`` of it is the task's own).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: a pool failed.
    """
    if repeat < 1 or workers < 1 or not seconds > 0 or not tasks or min(tasks) < 0:
        raise ValueError("repeat and workers are at least 1, seconds above 0, tasks 0 ms or more")
    with ExitStack() as stack:
        there = [pool for pool in pools if absent(pool) is None]
        crews = {pool: stack.enter_context(Crew(pool, 1, command(pool, workers))) for pool in there}
        counts: dict[tuple[int, str, str], int] = {}
        for number, ms, pool, chunk in product(range(repeat), tasks, there, (OWN, CHUNKS)):
            if pool == SFM and chunk == CHUNKS:
                continue  # it chooses well
            crew, cell = crews[pool], (ms, pool, chunk)
            if cell not in counts:
                counts[cell] = _count(crew, ms, workers, seconds)
            count = counts[cell]
            size = 0 if chunk == OWN else max(1, count // 16)
            took = crew.ask("tasks", count=count, ms=ms, chunk=size)["seconds"]
            about: Row = {"task_ms": ms, "pool": pool, "chunk": chunk, "workers": workers}
            yield about | {"tasks": count, "round": number, "us": 1e6 * took / count}


def _count(crew: Crew, ms: int, workers: int, seconds: float) -> int:
    """How many tasks take about so long; what the first ones have to open is open then."""
    few = 4 * workers
    crew.ask("tasks", count=few, ms=0, chunk=0)
    one = crew.ask("tasks", count=few, ms=ms, chunk=0)["seconds"] / few
    return max(few, min(MOST, int(seconds / one)) // few * few)


# What is shown of it


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each kind of task and pool: the median, the fastest, and SFM's farm in them."""
    listed: list[Row] = []
    for (ms, pool, chunk), group in grouped(measured, ("task_ms", "pool", "chunk")).items():
        times = [one["us"] for one in group]
        row: Row = {"task_ms": ms, "pool": pool, "chunk": chunk, "tasks": group[0]["tasks"]}
        listed.append(row | {"us": median(times), "fastest": min(times)})
    ours = {one["task_ms"]: one["us"] for one in listed if one["pool"] == SFM}
    for row in listed:
        if row["task_ms"] in ours:
            row["farm / it"] = ours[row["task_ms"]] / row["us"]
    return sorted(listed, key=lambda row: row["task_ms"])


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: all pools, then the targets."""
    listed = summary(measured)
    targets = []
    for (ms, pool), group in grouped(listed, ("task_ms", "pool")).items():
        ours = [one for one in listed if one["task_ms"] == ms and one["pool"] == SFM]
        if pool.startswith("SFM") or not ours:
            continue
        pairs = [
            Pair(f"chunks: {one['chunk']}", ours[0]["us"], one["us"], ours[0]["fastest"],
                 one["fastest"])
            for one in group
        ]  # fmt: skip
        targets.append(verdict(f"tasks of {ms} ms", LIMITS.get(ms), pool, pairs))
    return {"Time a task (µs)": listed, "Targets (times in µs)": targets}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.bench farm``."""
    parser.add_argument("--workers", type=at_least(1), metavar="N", help=f"default {WORKERS}")
    parser.add_argument("--tasks", type=numbers, metavar="MS,…", help="of 1, 100, … ms alone")
    parser.add_argument("--only", type=names(tuple(POOLS), "pool"), metavar="POOL,…", help="*, ?")


def notes(options: argparse.Namespace) -> list[str]:
    """What is left out here, and how to get it."""
    return [why for pool in options.only or POOLS if (why := absent(pool))]


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    return rows(
        tasks=options.tasks or (TASKS[:2] if options.quick else TASKS),
        pools=options.only or tuple(POOLS),
        workers=options.workers or (2 if options.quick else WORKERS),
        repeat=options.repeat or (1 if options.quick else 5),
        seconds=0.05 if options.quick else 0.5,
    )
