"""Collectives beside mpi4py's: barrier, allreduce, broadcast, on 2 to 16 processes.

SFM's processes and MPI's take turns; those that are not measured are parked. With more processes
than cores the time is that of switching between them. The last table compares with SFM's targets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks import RANKS
from benchmarks.turns import Answer, in_turns
from benchmarks.verdict import Pair, medians, verdict
from sfm_kernel.collectives import Group
from sfm_kernel.lessons.measure.arguments import chosen, numbers
from sfm_kernel.lessons.measure.engines import driving, serve_jobs
from sfm_kernel.lessons.measure.launched import absent, ranks
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

COMPARED = ("mpi4py",)
PROCESSES = (2, 4, 8, 16)
SFM, MPI = "SFM", "mpi4py"
LARGE = 1 << 20

BARRIER, SMALL, OBJECT, ARRAY, BCAST = (
    "barrier",
    "allreduce 8 B",
    "allreduce of a float",
    "allreduce 1 MB",
    "bcast 1 MB",
)
CALLS = (BARRIER, SMALL, OBJECT, ARRAY, BCAST)
"""``allreduce 8 B`` and ``1 MB`` reduce arrays into arrays allocated before (mpi4py's
``Allreduce``), ``allreduce of a float`` an object (its ``allreduce``)."""


# The work of one process


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Do home's measurements, until it says stop. Runs on every engine."""
    groups: dict[int, Group] = {}

    def work(job: Message) -> Mapping[str, Any]:
        if job.engines not in groups:
            groups[job.engines] = Group(sfm, range(job.engines))
        group = groups[job.engines]
        return {"seconds": timed(calls_of(group)[job.call], group.barrier, job.count)}

    serve_jobs(sfm, "collectives", work, home)


def calls_of(group: Group) -> dict[str, Callable[[], object]]:
    """The measured operations, as calls without arguments."""
    import numpy as np

    single, single_out = np.ones(1), np.empty(1)
    many, many_out = np.ones(LARGE // 8), np.empty(LARGE // 8)
    return {
        BARRIER: group.barrier,
        SMALL: lambda: group.allreduce(single, np.add, out=single_out),
        OBJECT: lambda: group.allreduce(1.5),
        ARRAY: lambda: group.allreduce(many, np.add, out=many_out),
        BCAST: lambda: group.bcast(many, 0),
    }


def timed(call: Callable[[], object], barrier: Callable[[], object], count: int) -> float:
    """Seconds of one of ``count`` calls; the first few are not counted."""
    for _ in range(min(count, 5)):
        call()
    barrier()
    started = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - started) / count


# The measurement


def rows(
    *,
    processes: Sequence[int] = PROCESSES,
    calls: Sequence[str] = CALLS,
    mpi: bool = True,
    repeat: int = 5,
    seconds: float = 0.1,
) -> Iterator[Row]:
    """Measure on 2, 4, … local processes; yield a row after each measurement.

    Each of ``repeat`` rounds makes every call through SFM and mpi4py (if it is installed and
    ``mpi`` is true), for about ``seconds`` each.

    Columns: call, processes, mechanism, round, us (one call, on rank 0).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: a process failed.
    """
    if repeat < 1 or not processes or min(processes) < 1 or not seconds > 0:
        raise ValueError(
            f"repeat {repeat} and processes {list(processes)}: at least 1; seconds {seconds}: more "
            f"than 0"
        )
    calls = chosen(calls, CALLS, "call")
    mpi = mpi and absent("mpi4py") is None
    for n in processes:
        yield from _calls(n, calls, mpi, repeat, seconds)


def _calls(n: int, calls: Sequence[str], mpi: bool, repeat: int, seconds: float) -> Iterator[Row]:
    with ExitStack() as stack:
        engines = stack.enter_context(driving("collectives", serve, n))
        asking: dict[str, Callable[[str, int], Answer]] = {
            SFM: lambda call, count: engines(engines=n, call=call, count=count)
        }
        if mpi:
            launched = stack.enter_context(ranks("mpi4py", n, RANKS))
            asking[MPI] = lambda call, count: launched.ask("collective", call=call, count=count)
        for number, call, mechanism, found in in_turns(asking, calls, repeat, seconds):
            about: Row = {"call": call, "processes": n, "mechanism": mechanism}
            yield about | {"round": number, "us": 1e6 * found["seconds"]}


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each call and number of processes: medians, fastest times, and their ratio."""
    return medians(measured, ("call", "processes"), SFM, MPI)


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: all calls, then the targets."""
    listed = summary(measured)
    targets = []
    for name, calls, few, limit in (
        ("barrier, 2 processes", (BARRIER,), True, 1.0),
        ("allreduce 8 B, 2 processes", (SMALL,), True, 1.0),
        ("barrier, more processes", (BARRIER,), False, 0.5),
        ("allreduce 8 B, more processes", (SMALL,), False, 0.5),
        ("allreduce 1 MB", (ARRAY,), None, 1.0),
    ):
        pairs = [
            Pair(
                f"{row['processes']} processes",
                row[f"{SFM} us"],
                row[f"{MPI} us"],
                row[f"{SFM} fastest"],
                row[f"{MPI} fastest"],
            )
            for row in listed
            if row["call"] in calls
            and f"{MPI} us" in row
            and (few is None or few == (row["processes"] <= 2))
        ]
        targets.append(verdict(name, limit, "mpi4py", pairs))
    return {"Collectives (times in µs)": listed, "Targets (times in µs)": targets}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks collectives``."""
    parser.add_argument("--processes", type=numbers, metavar="n,n,…", help="how many")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each number of processes."""
    repeat = options.repeat or (2 if options.quick else 5)
    seconds = 0.02 if options.quick else 0.1
    measured = partial(rows, repeat=repeat, seconds=seconds)
    return [
        Part(
            f"{n} processes",
            partial(measured, processes=(n,)),
            1 + n / 2 + (repeat + 1) * 2 * len(CALLS) * seconds,
            repeat,
        )
        for n in options.processes or (PROCESSES[:2] if options.quick else PROCESSES)
    ]
