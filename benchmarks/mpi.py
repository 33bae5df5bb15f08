"""mpi4py on SFM's MPI beside mpi4py on MPICH: messages, collectives, windows, and the start.

The same program measures in ranks of ``python -m sfm_kernel.mpi`` and in ranks of MPICH's
``mpiexec``; one job is parked while the other measures. The last table compares with SFM's targets.
``pingpong`` and ``collectives`` compare SFM's calls with mpi4py's.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product

from benchmarks import RANKS
from benchmarks.communicator import ALLREDUCE, BARRIER, CALLS, cells
from benchmarks.turns import Answer, in_turns
from benchmarks.verdict import Pair, medians, verdict
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons import usable_cores
from sfm_kernel.lessons.measure.arguments import chosen, names, numbers
from sfm_kernel.lessons.measure.launched import OURS, LaunchedJob, absent, launcher, ranks
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.pingpong.messages import THREE

COMPARED = ("mpi4py",)
SFM, MPICH = "SFM", "MPICH"
KINDS = {SFM: OURS, MPICH: "mpi4py"}
"""Library -> kind of the launched job."""

START, PROGRAM = "start", "from mpi4py import MPI"
PROCESSES = (2, 4, 8)
QUICK = (THREE, "8 B", "1 MB", "", PROGRAM)
"""The messages of a quick run."""

CROWD = {True: (0.1, ", crowded"), False: (0.6, "")}
"""The largest ratio of a barrier's and a small allreduce's time to MPICH's. In a crowd, which is
more than two processes a core, MPICH's ranks take the cores from those for which they wait."""


def rows(
    *,
    processes: Sequence[int] = PROCESSES,
    calls: Sequence[str] = (*CALLS, START),
    messages: Sequence[str] | None = None,
    mpich: bool = True,
    repeat: int = 9,
    seconds: float = 0.06,
) -> Iterator[Row]:
    """Measure on 2, 4, … local processes; yield a row after each measurement.

    Each of ``repeat`` rounds takes every call through both libraries, one after the other, for
    about ``seconds`` each; ``start`` starts 4 processes that import MPI. MPICH is measured if it
    is installed and ``mpich`` is true; ``messages``: only these.

    Columns: call, message, processes, crowded (more than two processes a core), mechanism, library
    (its version), round, us (of a call, a round trip, or a complete window).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: a process failed.
    """
    if repeat < 1 or not processes or min(processes) < 2 or not seconds > 0:
        raise ValueError(
            f"repeat {repeat}: at least 1; processes {list(processes)}: at least 2; seconds "
            f"{seconds}: more than 0"
        )
    calls = chosen(calls, (*CALLS, START), "call")
    kinds = [SFM, *([MPICH] if mpich and absent("mpi4py") is None else [])]
    for n in processes:
        selected = [
            (call, message)
            for call, message in cells(n)
            if call in calls and (messages is None or message in messages)
        ]
        if selected:
            yield from _calls(n, selected, kinds, repeat, seconds)
    if START in calls:
        for number, kind in product(range(repeat), kinds):
            about: Row = {"call": START, "message": PROGRAM, "processes": 4, "crowded": False}
            about |= {"mechanism": kind, "library": "", "round": number}
            yield about | {"us": 1e6 * _start(KINDS[kind])}


def _calls(
    n: int, selected: Sequence[tuple[str, str]], kinds: Sequence[str], repeat: int, seconds: float
) -> Iterator[Row]:
    with ExitStack() as stack:
        asking: dict[str, Callable[[tuple[str, str], int], Answer]] = {}
        for kind in kinds:
            launched = stack.enter_context(ranks(KINDS[kind], n, RANKS))
            asking[kind] = partial(_asked, launched)
        for number, (call, message), kind, found in in_turns(asking, selected, repeat, seconds):
            about: Row = {"call": call, "message": message, "processes": n}
            about |= {"crowded": n > 2 * usable_cores(), "mechanism": kind}
            about |= {"library": found["route"], "round": number}
            yield about | {"us": 1e6 * found["seconds"]}


def _asked(launched: LaunchedJob, cell: tuple[str, str], count: int) -> Answer:
    call, message = cell
    return launched.ask("measure", call=call, message=message, count=count)


def _start(kind: str) -> float:
    """Seconds in which 4 processes start, import MPI, and end."""
    started = time.perf_counter()
    done = subprocess.run([*launcher(kind, 4), "-c", PROGRAM], capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SFMError(f"{kind} did not start; it said:\n{done.stderr[-2000:]}")
    return seconds


# Tables


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each call: medians and fastest of both libraries, and their ratio."""
    return medians(measured, ("call", "message", "processes", "crowded"), SFM, MPICH)


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: all calls, then the targets."""
    listed = summary(measured)
    targets = []
    for (call, crowded), group in grouped(listed, ("call", "crowded")).items():
        limit, which = CROWD[crowded] if call in (BARRIER, ALLREDUCE) else (1.0, "")
        pairs = [
            Pair(
                ", ".join(filter(None, (row["message"], f"{row['processes']} processes"))),
                *(row[f"{kind} {column}"] for column in ("us", "fastest") for kind in KINDS),
            )
            for row in group
            if f"{MPICH} us" in row
        ]
        targets.append(verdict(call + which, limit, MPICH, pairs))
    shown = [{name: row[name] for name in row if name != "crowded"} for row in listed]
    return {"mpi4py on both libraries (µs)": shown, "Targets (times in µs)": targets}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks mpi``."""
    parser.add_argument("--processes", type=numbers, metavar="n,n,…", help="how many")
    known = (*CALLS, START)
    parser.add_argument("--only", type=names(known, "call"), metavar="CALL,…", help="*, ? fit any")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for: each number of processes, and the start."""
    repeat = options.repeat or (2 if options.quick else 9)
    seconds = 0.02 if options.quick else 0.06
    measured = partial(
        rows, messages=QUICK if options.quick else None, repeat=repeat, seconds=seconds
    )
    asked = options.only or (*CALLS, START)
    calls = [call for call in asked if call != START]
    found = [
        Part(
            f"{n} processes",
            partial(measured, processes=(n,), calls=calls),
            2 + n / 2 + (repeat + 1) * 2 * len(cells(n)) * seconds,
            repeat,
        )
        for n in options.processes or (PROCESSES[:1] if options.quick else PROCESSES)
        if calls
    ]
    if START in asked:
        found.append(Part(START, partial(measured, calls=(START,)), 1.5 * repeat, repeat))
    return found
