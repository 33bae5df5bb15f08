"""The inbox: the cost of a receive while many messages wait that do not match.

Engine 1 sends ``depth`` messages that do not match, then some that do; engine 0 waits until all
have arrived and then measures only its calls. mpi4py does the same beside it.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import RANKS
from benchmarks.patterns import WORK
from sfm_kernel.errors import WouldBlock
from sfm_kernel.lessons.measure.arguments import chosen, numbers
from sfm_kernel.lessons.measure.engines import START_SECONDS, driving, rank_of, serve_jobs
from sfm_kernel.lessons.measure.launched import absent, ranks
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.observe.snapshot import snapshot

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

COMPARED = ("mpi4py",)
DEPTHS = (0, 100, 10_000, 100_000)


# The calls. Each is made ``count`` times; ``count`` messages wait for those that take one.


def _recv(sfm: Endpoint, count: int) -> None:
    opened = attrgetter(*WORK)
    for _ in range(count):
        opened(sfm.recv(tag="match"))


def _recv_nb(sfm: Endpoint, count: int) -> None:
    opened = attrgetter(*WORK)
    for _ in range(count):
        opened(sfm.recv_nb(tag="match"))


def _recv_nb_of_nothing(sfm: Endpoint, count: int) -> None:
    for _ in range(count):
        try:
            sfm.recv_nb(tag="nothing")
        except WouldBlock:
            pass


def _peek(sfm: Endpoint, count: int) -> None:
    for _ in range(count):
        sfm.peek(tag="match")


def _predicate(sfm: Endpoint, count: int) -> None:
    opened = attrgetter(*WORK)
    for _ in range(count):
        opened(sfm.recv(tag=lambda tag: tag == "match"))


CALLS: dict[str, Callable[[Endpoint, int], None]] = {
    "recv(tag=x)": _recv,
    "recv_nb(tag=x)": _recv_nb,
    "recv_nb(tag=x), none": _recv_nb_of_nothing,
    "peek(tag=x)": _peek,
    "recv(tag=predicate)": _predicate,
}
PREDICATE = "recv(tag=predicate)"
MPI = "mpi4py recv(tag=x)"
MEMORY = "memory"

TESTED, WALKED = 50_000, 20_000_000
"""Messages that a measurement with a predicate tests, and that one of mpi4py passes."""


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Do home's measurements, until it says stop. Runs on engines 0 and 1; 1 sends, 0 receives."""
    work = _feed if rank_of(sfm) == 1 else _take
    serve_jobs(sfm, "inbox", lambda job: work(sfm, job), home)


def _feed(sfm: Endpoint, job: Message) -> None:
    sfm.recv(src=0, tag="begin")
    for _ in range(job.depth):
        sfm.send(dest=0, tag="other", **WORK)
    sfm.send(dest=0, tag="depth reached")
    while (count := sfm.recv(src=0, tag="inbox feed").count) > 0:
        for _ in range(count):
            sfm.send(dest=0, tag="match", **WORK)
        sfm.send(dest=0, tag="all here")


def _take(sfm: Endpoint, job: Message) -> Mapping[str, Any]:
    before = resident()
    sfm.send(dest=1, tag="begin")
    sfm.recv(tag="depth reached")
    grown, accounted = resident() - before, accounted_by(sfm)
    seconds: dict[str, list[float]] = {name: [] for name in job.calls}
    for _, name in product(range(job.repeat), job.calls):
        # A predicate is called with every message that waits.
        few = max(1, TESTED // max(job.depth, 1))
        count = min(job.count, few) if name == PREDICATE else job.count
        sfm.send(dest=1, tag="inbox feed", count=count)
        sfm.recv(tag="all here")
        started = time.perf_counter()
        CALLS[name](sfm, count)
        seconds[name].append((time.perf_counter() - started) / count)
        while sfm.peek(tag="match"):  # messages that a peek has not taken
            sfm.recv(tag="match")
    sfm.send(dest=1, tag="inbox feed", count=0)
    for _ in range(job.depth):
        sfm.recv(tag="other")
    return {"seconds": seconds, "grown": grown, "accounted": accounted}


def resident() -> int:
    """The bytes of memory that this process occupies now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def accounted_by(sfm: Endpoint) -> int:
    """The bytes that the endpoint counts for the messages in its inbox."""
    (process,) = (entry for entry in snapshot(sfm.folder)["processes"] if entry["name"] == sfm.name)
    return int(process["bytes"])


# The measurement, driven from home


def rows(
    *,
    home: Endpoint | None = None,
    depths: Sequence[int] = DEPTHS,
    calls: Sequence[str] = tuple(CALLS),
    mpi: bool = True,
    repeat: int = 5,
    count: int = 500,
) -> Iterator[Row]:
    """Measure the calls at every depth; yield a row after each measurement.

    Each of ``repeat`` rounds makes ``count`` calls of every kind, one kind after the other (fewer
    with a predicate, which is called with every message that waits). Without ``home``, two local
    processes are started; with it, engines 0 and 1 of its world must run ``serve(sfm)``. mpi4py
    is measured beside them, if it is installed and ``mpi`` is true.

    Columns: call, depth, round, us (one call); rows of the call "memory" have bytes_each (growth
    of the process's memory for each message) and accounted_each (what the endpoint counts).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, or a process failed.
    """
    if repeat < 1 or count < 1 or not depths or min(depths) < 0:
        raise ValueError(
            f"repeat {repeat}, count {count}: at least 1; depths {list(depths)}: at least 0"
        )
    chosen(calls, list(CALLS), "call")
    with ExitStack() as stack:
        ask = stack.enter_context(driving("inbox", serve, 2, home))
        # With a time limit: engines that do not serve never answer.
        ask(timeout=START_SECONDS, engines=2, depth=0, calls=[], repeat=0, count=0)
        mpi = mpi and absent("mpi4py") is None
        launched = stack.enter_context(ranks("mpi4py", 2, RANKS) if mpi else nullcontext(None))
        for depth in depths:
            done = ask(engines=2, depth=depth, calls=list(calls), repeat=repeat, count=count)
            if depth:
                yield {
                    "call": MEMORY,
                    "depth": depth,
                    "round": 0,
                    "bytes_each": done.grown / depth,
                    "accounted_each": done.accounted / depth,
                }
            seconds = dict(done.seconds)
            if launched is not None:
                few = min(count, max(1, WALKED // max(depth, 1)))
                other = launched.ask("inbox", depth=depth, count=few, repeat=repeat)
                seconds[MPI] = other["seconds"]
            for number, call in product(range(repeat), seconds):
                us = seconds[call][number] * 1e6
                yield {"call": call, "depth": depth, "round": number, "us": us}


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each call and depth, over all rounds; its ratio to the smallest depth."""
    groups = grouped([row for row in measured if row["call"] != MEMORY], ("call", "depth"))
    medians = {key: median(row["us"] for row in group) for key, group in groups.items()}
    lowest = min((depth for _, depth in groups), default=0)
    return [
        {
            "call": call,
            "depth": depth,
            "us": medians[call, depth],
            "fastest_us": min(row["us"] for row in group),
            "ratio": medians[call, depth] / medians[call, lowest],
        }
        for (call, depth), group in groups.items()
    ]


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: a row for each call, a column for each depth; memory for each message."""
    listed = summary(measured)
    found = {}
    for title, column in (
        ("One call behind so many unmatched messages, µs (medians)", "us"),
        ("The same as fastest times, µs", "fastest_us"),
        ("Ratio of medians to the emptiest inbox", "ratio"),
    ):
        found[title] = [
            {"call": call} | {f"{row['depth']:,}": row[column] for row in group}
            for (call,), group in grouped(listed, ("call",)).items()
        ]
    memory = [row for row in measured if row["call"] == MEMORY]
    found["Bytes of memory for each message in the inbox"] = [
        {
            "depth": row["depth"],
            "resident": row["bytes_each"],
            "accounted": row["accounted_each"],
        }
        for row in memory
    ]
    return {title: table for title, table in found.items() if table}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks inbox``."""
    parser.add_argument("--depths", type=numbers, metavar="n,n,…", help="beside an empty inbox")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each depth."""
    depths = DEPTHS[:3] if options.quick else DEPTHS
    if options.depths:
        depths = (0, *options.depths)
    repeat = options.repeat or (2 if options.quick else 5)
    measured = partial(rows, repeat=repeat, count=100 if options.quick else 500)
    return [
        Part(f"depth {depth:,}", partial(measured, depths=(depth,)), 2 + depth / 1e4, repeat)
        for depth in depths
    ]
