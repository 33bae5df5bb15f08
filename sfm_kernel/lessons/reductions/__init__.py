"""Reductions: how their time grows with the number of processes, for every algorithm.

Each process gives an array and gets the sum of all (``allreduce``), through shared memory and over
ZeroMQ. With more processes than cores the processes take turns, and the time of a reduction depends
on the work of all processes together; so the processor time and the switches between processes are
measured as well.

Source: Van Iwaarden, Steinman and Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 5, Figures 7 and 8.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from sfm_kernel.collectives import ALGORITHMS
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.arguments import above_zero, at_least, names, numbers
from sfm_kernel.lessons.measure.engines import START_SECONDS, driving
from sfm_kernel.lessons.measure.machine import usable_cores
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.pingpong.messages import size_of
from sfm_kernel.lessons.reductions.fit import BACK_TO_BACK, LogGP, growth, messages, prices
from sfm_kernel.lessons.reductions.work import UNIT, serve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfm_kernel.endpoint import Endpoint

TREE = ("two-level", "flags")
"""Algorithms that use shared memory with any transport: measured only with "shm"."""

_BY_MESSAGES = [name for name in ALGORITHMS["allreduce"] if name not in TREE]

USING = {
    "shm": (*_BY_MESSAGES, *TREE),  # in this order a line has the same colour in both plots
    "zmq": tuple(_BY_MESSAGES),
}
"""Transport -> the algorithms that are measured with it."""

TRANSPORTS = tuple(USING)
PROCESSES = (2, 4, 6, 8, 12, 16)
SIZES = (8,)
MODEL_SIZES = (8, 1 << 10, 64 << 10, 1 << 20)
"""Bytes, for the model: the cost of a byte shows only in large reductions."""

MOST, FEWEST = 2000, 3
"""The largest and smallest number of reductions in one measurement."""

# The measurement


def rows(
    *,
    home: Endpoint | None = None,
    transports: Sequence[str] = TRANSPORTS,
    algorithms: Sequence[str] = ALGORITHMS["allreduce"],
    processes: Sequence[int] = PROCESSES,
    sizes: Sequence[int] = SIZES,
    model_sizes: Sequence[int] = (),
    cores: int | None = None,
    repeat: int = 3,
    seconds: float = 0.03,
) -> Iterator[Row]:
    """Measure every algorithm on 2, 4, … processes; yield a row after each measurement.

    Each of ``repeat`` rounds takes every cell in turn, for about ``seconds`` each, so that a slow
    moment of the machine affects all of them. The processes that take no part wait in ``recv``.
    Without ``home``, as many local processes are started as the largest group needs; with it (the
    endpoint of a notebook), all engines of its world must run ``serve(sfm)``.

    Args:
        transports: "shm", and "zmq": all messages over ZeroMQ, encrypted, though between
            processes of one machine. "flags" and "two-level" are not measured with it.
        sizes: bytes that each process gives, multiples of 8.
        model_sizes: further sizes for ``fit.prices``: measured on no more processes than cores,
            and as messages back to back.
        cores: the number of this process's cores that the local processes share.

    Columns: algorithm, transport, processes, cores (that they may use), bytes, round, count,
    us (one reduction, on rank 0), cpu_us (processor time of all processes for one reduction),
    switches (of all processes in one reduction). The rows of the algorithm "back to back" are one
    message each, and have no cpu_us and switches.

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, or a process failed.
    """
    _check(transports, algorithms, processes, [*sizes, *model_sizes], repeat, seconds)
    _check_limits(home, max(processes), cores)
    usable = usable_cores()
    shared = cores or (int(usable) if usable.is_integer() else usable)
    n = max(processes) if home is None else home.size
    cells = list(_cells(transports, algorithms, processes, sizes, model_sizes, shared))
    counts: dict[_Cell, int] = {}
    with ExitStack() as stack:
        with _only(cores):  # the processes stay on these cores, this process does not
            ask = stack.enter_context(driving("reductions", serve, n, home))
        for number, cell in product(range(repeat), cells):
            asked = partial(ask, engines=cell.processes, **cell.job())
            if cell not in counts:  # the first call opens channels; the second gives the count
                asked(timeout=START_SECONDS, count=1)
                counts[cell] = int(seconds / asked(count=FEWEST).seconds)
            count = max(FEWEST, min(MOST, counts[cell]))
            done = asked(count=count)
            row = cell.row() | {"cores": shared, "round": number, "count": count}
            row["us"] = done.seconds * 1e6
            if "cpu" in done:
                row |= {"cpu_us": done.cpu * 1e6, "switches": done.switches}
            yield row


class _Cell(NamedTuple):
    """A configuration, measured once in each round."""

    transport: str
    algorithm: str
    processes: int
    nbytes: int

    def job(self) -> dict[str, Any]:
        work = "flood" if self.algorithm == BACK_TO_BACK else "reduce"
        return {"work": work} | self._asdict()

    def row(self) -> Row:
        return {
            "algorithm": self.algorithm,
            "transport": self.transport,
            "processes": self.processes,
            "bytes": self.nbytes,
        }


def _cells(
    transports: Sequence[str],
    algorithms: Sequence[str],
    processes: Sequence[int],
    sizes: Sequence[int],
    model_sizes: Sequence[int],
    cores: float,
) -> Iterator[_Cell]:
    for nbytes in dict.fromkeys([*sizes, *model_sizes]):
        for n in processes:
            if nbytes not in sizes and n > max(cores, 2):  # ``prices`` cannot use it
                continue
            for transport in transports:
                for algorithm in USING[transport]:
                    if algorithm in algorithms:
                        yield _Cell(transport, algorithm, n, nbytes)
    for nbytes, transport in product(model_sizes, transports):
        yield _Cell(transport, BACK_TO_BACK, 2, nbytes)


def _check(
    transports: Sequence[str],
    algorithms: Sequence[str],
    processes: Sequence[int],
    sizes: Sequence[int],
    repeat: int,
    seconds: float,
) -> None:
    for kind, given, known in (
        ("transport", transports, TRANSPORTS),
        ("algorithm", algorithms, ALGORITHMS["allreduce"]),
    ):
        for name in given:
            if name not in known:
                raise ValueError(f"no {kind} {name!r}; there are {', '.join(known)}")
    if not any(name in USING[transport] for name in algorithms for transport in transports):
        raise ValueError(
            f"{', '.join(algorithms)} through {', '.join(transports)}: nothing to measure, since "
            f"{' and '.join(TREE)} are measured with shm alone"
        )
    if repeat < 1 or not seconds > 0:
        raise ValueError(f"repeat {repeat}: at least 1; seconds {seconds}: above 0")
    if not processes or min(processes) < 2:
        raise ValueError(f"processes {list(processes)}: at least 2 each")
    if not sizes or any(size < UNIT or size % UNIT for size in sizes):
        raise ValueError(f"sizes {list(sizes)}: at least {UNIT} bytes each, and whole floats")


def _check_limits(home: Endpoint | None, processes: int, cores: int | None) -> None:
    if home is not None and processes > home.size:
        raise ValueError(
            f"{processes} processes are more than the {home.size} engines of {home.world!r}: "
            f"give processes=… up to {home.size}"
        )
    usable = max(usable_cores(), 1)
    if cores is not None and (home is not None or not 1 <= cores <= usable):
        raise ValueError(
            f"cores {cores}: 1 to {usable:g}, and only for local processes (without home)"
        )


@contextmanager
def _only(cores: int | None) -> Iterator[None]:
    """Let processes that start in the block share ``cores`` of this process's cores.

    The cores are chosen at random: on a hub, others may be measuring as well.
    """
    before = os.sched_getaffinity(0)
    if cores is not None and cores < len(before):
        os.sched_setaffinity(0, random.sample(sorted(before), cores))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


# Tables and plots


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each cell, over all rounds: medians, the fastest time, and the busy cores.

    ``busy`` is processor time divided by time. ``messages`` counts those of all processes in one
    reduction.
    """
    keys = ("transport", "cores", "bytes", "algorithm", "processes")
    listed = []
    for key, group in grouped(measured, keys).items():
        line: Row = dict(zip(keys, key, strict=True))
        line["us"] = median(row["us"] for row in group)
        line["fastest_us"] = min(row["us"] for row in group)
        if "cpu_us" in group[0]:
            line["cpu_us"] = median(row["cpu_us"] for row in group)
            line["busy"] = median(row["cpu_us"] / row["us"] for row in group)
            line["switches"] = median(row["switches"] for row in group)
            line["messages"] = messages(line["algorithm"], line["processes"])
        listed.append(line)
    return listed


def model(measured: Sequence[Row]) -> LogGP:
    """The model of messages over ZeroMQ, and of trees of flags in shared memory.

    Raises:
        SFMError: the rows are not enough to fit it; see ``rows(model_sizes=...)``.
    """
    listed = summary(measured)
    over_zmq = [row for row in listed if row["transport"] == "zmq"]
    trees = [row for row in listed if row["algorithm"] == "flags"]
    return LogGP(prices(over_zmq), prices(trees) if trees else None)


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: times, processor time and switches, laws with residuals, the model."""
    listed = summary(measured)
    found: dict[str, list[Row]] = {}
    reduced = [row for row in listed if row["algorithm"] != BACK_TO_BACK]
    for (transport, nbytes), group in grouped(reduced, ("transport", "bytes")).items():
        pivot = [
            {"algorithm": key[0]} | {f"p = {row['processes']}": row["us"] for row in line}
            for key, line in grouped(group, ("algorithm",)).items()
        ]
        found[f"An allreduce of {size_of(nbytes)} through {transport}, µs (medians)"] = pivot
    spent = ("transport", "algorithm", "processes", "us", "cpu_us", "busy", "switches", "messages")
    found["Processor time and switches of all processes"] = [
        {name: row[name] for name in spent} for row in reduced if "busy" in row
    ]
    found["What the times follow"] = growth(listed)
    found["Prices of the model"] = _prices(measured)
    return {title: table for title, table in found.items() if table}


def _prices(measured: Sequence[Row]) -> list[Row]:
    try:
        found = model(measured)
    except SFMError:  # the rows are not enough to fit it
        return []
    return [
        {
            "prices of": name,
            "L + 2o, µs": fitted.step,
            "max(o, g), µs": None if fitted is found.flags else fitted.gap,  # a tree has none
            "G, µs/kB": fitted.byte * 1024,
            "points": fitted.points,
            "residual_%": 100 * fitted.relative,
        }
        for name, fitted in (("messages over zmq", found.message), ("flags", found.flags))
        if fitted is not None
    ]


def plot(measured: Sequence[Row]) -> Figure:
    """Time against processes for each transport; beside them the model.

    The plot shows the first size: ``rows`` measures it first, and ``model_sizes`` last.
    """
    from sfm_kernel.lessons.reductions.plots import Growth, Model
    from sfm_kernel.plots import Panel, still

    cores = measured[0]["cores"]
    nbytes = measured[0]["bytes"]
    processes = {row["processes"] for row in measured}
    panels: list[Panel] = [
        Growth(transport, processes, nbytes=nbytes, cores=cores)
        for transport in dict.fromkeys(row["transport"] for row in measured)
    ]
    try:
        panels.append(Model(model(measured), nbytes=nbytes, cores=cores))
    except SFMError:  # the rows are not enough to fit it
        pass
    return still(measured, *panels)


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons reductions``."""
    parser.add_argument("--processes", type=numbers, metavar="p,p,…", help="how many")
    parser.add_argument(
        "--bytes", type=numbers, metavar="n,n,…", help="that each process gives; --plot: the first"
    )
    parser.add_argument(
        "--only", type=names(ALGORITHMS["allreduce"], "algorithm"), metavar="NAME,…",
        help=f"algorithms, with * and ?: {', '.join(ALGORITHMS['allreduce'])}",
    )  # fmt: skip
    parser.add_argument("--transport", choices=[*TRANSPORTS, "all"], default="all")
    parser.add_argument("--cores", type=at_least(1), metavar="N", help="let all share N cores")
    parser.add_argument("--seconds", type=above_zero, metavar="S", help="for each measurement")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each transport."""
    algorithms = options.only or ALGORITHMS["allreduce"]
    asked = TRANSPORTS if options.transport == "all" else (options.transport,)
    # If there is nothing to measure, ``rows`` says so.
    some = [name for name in asked if any(known in USING[name] for known in algorithms)] or asked
    repeat = options.repeat or (2 if options.quick else 5)
    measured = partial(
        rows,
        algorithms=algorithms,
        processes=options.processes or (PROCESSES[:3] if options.quick else PROCESSES),
        sizes=options.bytes or SIZES,
        model_sizes=MODEL_SIZES[:3] if options.quick else MODEL_SIZES,
        cores=options.cores,
        repeat=repeat,
        seconds=options.seconds or (0.01 if options.quick else 0.03),
    )
    return [
        Part(name, partial(measured, transports=(name,)), 2 + 3 * repeat, repeat) for name in some
    ]
