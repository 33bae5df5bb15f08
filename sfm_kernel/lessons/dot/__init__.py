"""The dot product over engines, by every allreduce, and conjugate gradients, which need it.

Two vectors are divided among the engines; each multiplies its part, and an allreduce adds up the
results. First the product alone is measured, then a solver (``cg``) that computes two products in
each iteration: the time until it converges, and the share of communication in it. Both use the
paper's allreduce and those of ``sfm_kernel.collectives`` that take a number.

Source: Fedosov and Benson, "Communication with Super Flexible Messaging", section 3, Example 2.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from itertools import product
from statistics import mean, median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from sfm_kernel.collectives import ALGORITHMS, Group
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.cpi import engine_counts
from sfm_kernel.lessons.dot import cg
from sfm_kernel.lessons.measure.arguments import above_zero, at_least, chosen, names, numbers
from sfm_kernel.lessons.measure.engines import (
    START_SECONDS,
    chosen_engines,
    driving,
    environment_of,
    local_engines,
    serve_jobs,
)
from sfm_kernel.lessons.measure.machine import usable_cores
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

FOR_ARRAYS = ("ring", "rabenseifner")
"""Algorithms that divide an array's elements among the engines: a single number has only one."""

FLAGS = "flags"
"""The algorithm for engines that share memory; it is left out if they do not."""

REDUCTIONS = (cg.EXAMPLE_2, *(name for name in ALGORITHMS["allreduce"] if name not in FOR_ARRAYS))

WORKS = ("dot", "cg")
LENGTHS = (1_000, 100_000, 1_000_000)
M = 200
TOLERANCE = 1e-8

MOST, FEWEST = 2000, 3
"""The largest and smallest number of dot products in one measurement."""

_BLAS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


# The work of one engine


@lru_cache(maxsize=1)
def vectors(length: int) -> tuple[cg.Floats, cg.Floats]:
    """Two vectors of normally distributed numbers, the same in every process.

    The numbers have 24 bits, so that each product is exact and only sums are rounded.
    """
    drawn = np.random.default_rng(length).standard_normal((2, length), dtype=np.float32)
    return drawn[0].astype(np.float64), drawn[1].astype(np.float64)


@lru_cache(maxsize=8)
def true_product(length: int) -> float:
    """The dot product of ``vectors(length)``, rounded once."""
    x, y = vectors(length)
    return math.fsum((x * y).tolist())


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Do home's measurements, until it says stop. Run it in every engine."""
    works = _Works(sfm)
    serve_jobs(sfm, "dot", lambda job: getattr(works, job.work)(job), home)


class _Works:
    """The works that home can ask for; engine 0 answers."""

    def __init__(self, sfm: Endpoint) -> None:
        self._sfm = sfm
        self._groups: dict[int, Group] = {}
        self._solver: cg.Solver | None = None

    def _group(self, engines: int) -> Group:
        if engines not in self._groups:
            self._groups[engines] = Group(self._sfm, range(engines))
        return self._groups[engines]

    def hello(self, job: Message) -> Mapping[str, Any]:
        """Open the channels, which is not measured; return the algorithms that can run here."""
        group = self._group(job.engines)
        usable = [name for name in job.algorithms if name != FLAGS or group.is_local]
        for algorithm in usable:
            cg.allreduce(self._sfm, group, 1.0, algorithm)
        return {"algorithms": usable}

    def dot(self, job: Message) -> Mapping[str, Any]:
        """``job.count`` dot products, one after the other."""
        group = self._group(job.engines)
        elements = cg.block(job.length, group.rank, group.size)
        x, y = (vector[elements.start : elements.stop] for vector in vectors(job.length))
        results, multiplying, products = [], [], []
        group.barrier()
        for _ in range(-job.warm_up, job.count):
            started = perf_counter()
            product = float(np.vdot(x, y))
            multiplied = perf_counter()
            results.append(cg.allreduce(self._sfm, group, product, job.algorithm))
            products.append(perf_counter() - started)
            multiplying.append(multiplied - started)
        seconds = products[job.warm_up :]
        shares = group.gather(1 - sum(multiplying[job.warm_up :]) / sum(seconds))
        if any(other != results for other in group.gather(results) or ()):
            raise SFMError(f"{job.algorithm}: the engines did not all get the same sums")
        return {"results": results, "seconds": seconds, "shares": shares}

    def solve(self, job: Message) -> Mapping[str, Any]:
        """``job.iterations`` of the solver; ``job.begin`` asks for a new solver."""
        group = self._group(job.engines)
        if job.begin or self._solver is None:
            self._solver = cg.Solver(self._sfm, group, job.m, job.algorithm)
        solver = self._solver
        solver.advance(job.iterations, job.tolerance)
        times = group.gather(
            (solver.times.total, solver.times.communication, solver.times.halo_alone)
        )
        return {"iterations": solver.iterations, "residual": solver.residual, "times": times}

    def check(self, job: Message) -> Mapping[str, Any]:
        """The errors of the solution."""
        assert self._solver is not None
        return {"true_residual": self._solver.true_residual(), "error": self._solver.error()}


# The measurement, driven from home


def rows(
    engines: int | None = None,
    *,
    home: Endpoint | None = None,
    works: Sequence[str] = WORKS,
    algorithms: Sequence[str] = REDUCTIONS,
    lengths: Sequence[int] = LENGTHS,
    m: int = M,
    tolerance: float = TOLERANCE,
    every: int = 20,
    repeat: int = 3,
    seconds: float = 0.05,
    count: int | None = None,
) -> Iterator[Row]:
    """Measure with every algorithm on 1, 2, … engines; yield a row after each measurement.

    ``works``: "dot" measures products of vectors with ``lengths`` elements, each for about
    ``seconds`` or ``count`` times; "cg" measures the solver on a grid of m × m points, until its
    residual is at most ``tolerance``, with a row after each ``every`` iterations.

    Without ``home``, local processes are started (4 by default). With ``home`` (the endpoint of
    a notebook), the engines of its world are used (all by default), which must run
    ``serve(sfm)``; they return from it when the rows end. Repeats are interleaved: each round
    measures every configuration once. Nothing is measured while the caller handles a row: the
    solver pauses between two rows.

    Columns: what ("dot" or "cg"), engines, algorithm, round, seconds (of one product, the median on
    engine 0; of the solver, so far), share and share_max (the share of communication, and waiting
    for it, in that time, 0 to 1: mean and maximum over the engines), and
    for dot: length, count, fastest (seconds), value, different (the number of different values),
    error (relative distance from the correctly rounded product);
    for cg: m, unknowns, iteration, residual (relative), halo_share (mean share of the neighbours'
    rows alone), done (whether this is the last row of its solver) and, if so, true_residual
    (computed from the solution) and error (largest distance from the exact solution, up to 0.07).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, one of them failed, or the solver did not converge.
    """
    engines, available = chosen_engines("dot", engines, home)
    works = chosen(works, WORKS, "work")
    algorithms = chosen(algorithms, REDUCTIONS, "algorithm")
    if not lengths or min(lengths) < 1:
        raise ValueError(f"vectors have at least 1 element, not {list(lengths)}")
    if min(repeat, every, 1 if count is None else count) < 1 or not seconds > 0:
        raise ValueError(
            f"repeat {repeat}, every {every}, count {count}, seconds {seconds}: all above 0"
        )
    cg.check_grid(m, engines)
    cg.check_tolerance(tolerance)
    counts = engine_counts(engines)
    with _asking(available, home) as ask:
        for n in reversed(counts):  # with a time limit: engines that do not serve never answer
            hello = ask(timeout=START_SECONDS, work="hello", engines=n, algorithms=algorithms)
            algorithms = hello.algorithms
        if not algorithms:
            raise SFMError("flags need engines that share memory, and these do not: two-level")
        fitting: dict[tuple[Any, ...], int] = {}
        for number in range(repeat):
            if "dot" in works:
                for cell in product(lengths, algorithms, counts):
                    if cell not in fitting:
                        fitting[cell] = count or _fitting(ask, cell, seconds)
                    yield _dot_row(ask, cell, number, fitting[cell])
            if "cg" in works:
                for algorithm, n in product(algorithms, counts):
                    yield from cg.rows(ask, m, algorithm, n, number, tolerance, every)


@contextmanager
def _asking(engines: int, home: Endpoint | None) -> Iterator[cg.Ask]:
    """The function that asks the engines of home's world or, without home, local processes."""
    with ExitStack() as stack:
        if home is None:
            with environment_of(_blas_threads()):
                home = stack.enter_context(local_engines(engines, serve))
        yield stack.enter_context(driving("dot", serve, engines, home))


def _blas_threads() -> dict[str, str]:
    """One thread for each process, as in a notebook's engines, unless the user wants others."""
    return {name: os.environ.get(name, "1") for name in _BLAS}


def _dots(ask: cg.Ask, cell: tuple[int, str, int], count: int, warm_up: int) -> Any:
    length, algorithm, engines = cell
    job: dict[str, Any] = {"length": length, "algorithm": algorithm, "engines": engines}
    return ask(work="dot", count=count, warm_up=warm_up, **job)


def _fitting(ask: cg.Ask, cell: tuple[int, str, int], seconds: float) -> int:
    """The number of dot products that take about ``seconds``."""
    done = _dots(ask, cell, FEWEST, 1)
    return max(FEWEST, min(MOST, int(seconds / median(done.seconds))))


def _dot_row(ask: cg.Ask, cell: tuple[int, str, int], number: int, count: int) -> Row:
    done = _dots(ask, cell, count, max(1, min(20, count // 5)))
    length, algorithm, engines = cell
    value, true = done.results[-1], true_product(length)
    return {
        "what": "dot",
        "length": length,
        "engines": engines,
        "algorithm": algorithm,
        "round": number,
        "count": count,
        "seconds": median(done.seconds),
        "fastest": min(done.seconds),
        "share": mean(done.shares),
        "share_max": max(done.shares),
        "value": value,
        "different": len(set(done.results)),
        "error": abs(value - true) / abs(true),
    }


# Tables and plots


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each configuration, over all rounds: medians, and the fastest time.

    Those of the solver have the columns iterations and ms instead of length and us, and the
    speed-up against one engine, which compares fastest times.
    """
    return [*_dot_summary(measured), *cg.summary(measured)]


def _dot_summary(measured: Sequence[Row]) -> list[Row]:
    dots = [row for row in measured if row["what"] == "dot"]
    keys = ("length", "algorithm", "engines")
    return [
        {"what": "dot"}
        | dict(zip(keys, key, strict=True))
        | {
            "us": median(row["seconds"] for row in group) * 1e6,
            "fastest_us": min(row["fastest"] for row in group) * 1e6,
            "share": median(row["share"] for row in group),
            "share_max": median(row["share_max"] for row in group),
            "different": max(row["different"] for row in group),
            "error": max(row["error"] for row in group),
        }
        for key, group in grouped(dots, keys).items()
    ]


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: times and shares, a row for each algorithm, a column for each number of
    engines; then the results of the solver."""
    dots, solved = _dot_summary(measured), cg.summary(measured)
    found = {
        "One dot product, µs (medians)": _by_engines(dots, "length", "us"),
        "Share of it that is communication (means over the engines)": (
            _by_engines(dots, "length", "share")
        ),
        "Conjugate gradients on m × m points until they converge, ms (medians)": (
            _by_engines(solved, "m", "ms")
        ),
        "Share of them that is communication (means over the engines)": (
            _by_engines(solved, "m", "share")
        ),
        "What they converge to (the worst of all algorithms)": [
            {"m": m, "engines": engines}
            | {
                column: max(row[column] for row in group)
                for column in ("iterations", "true_residual", "error")
            }
            for (m, engines), group in grouped(solved, ("m", "engines")).items()
        ],
    }
    return {title: table for title, table in found.items() if table}


def _by_engines(rows: Sequence[Row], size: str, column: str) -> list[Row]:
    """A row for each size and algorithm, with a column for each number of engines."""
    return [
        {size: n, "algorithm": algorithm}
        | {
            f"{row['engines']} engine{'s' if row['engines'] > 1 else ''}": row[column]
            for row in group
        }
        for (n, algorithm), group in grouped(rows, (size, "algorithm")).items()
    ]


def plot(measured: Sequence[Row]) -> Figure:
    """Times of the shortest dot product against engines; of the solver, speed-up and share."""
    from sfm_kernel.lessons.dot.plots import DotTime, Share
    from sfm_kernel.plots import Panel, Speedup, still

    engines = max(row["engines"] for row in measured)
    panels: list[Panel] = []
    if lengths := {row["length"] for row in measured if row["what"] == "dot"}:
        panels.append(DotTime(engines, only={"what": "dot", "length": min(lengths)}))
    if any(row["what"] == "cg" for row in measured):
        only = {"what": "cg", "done": True}
        panels.append(Speedup(engines, by="algorithm", only=only, cores=usable_cores()))
        panels.append(Share(engines, only=only))
    return still(measured, *panels)


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons dot``."""
    parser.add_argument("--engines", type=at_least(1), default=4, metavar="N", help="up to N")
    parser.add_argument(
        "--only", type=names(REDUCTIONS, "algorithm"), metavar="NAME,…",
        help=f"algorithms, with * and ?: {', '.join(REDUCTIONS)}",
    )  # fmt: skip
    parser.add_argument("--work", choices=[*WORKS, "all"], default="all", help="what is measured")
    parser.add_argument("--lengths", type=numbers, metavar="n,n,…", help="elements of the vectors")
    parser.add_argument("--m", type=at_least(1), metavar="M", help="the grid has M × M points")
    parser.add_argument("--tolerance", type=above_zero, default=TOLERANCE, metavar="T")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each work."""
    repeat = options.repeat or (1 if options.quick else 3)
    measured = partial(
        rows,
        options.engines,
        algorithms=options.only or REDUCTIONS,
        lengths=options.lengths or (LENGTHS[:2] if options.quick else LENGTHS),
        m=options.m or (max(32, options.engines) if options.quick else M),
        tolerance=options.tolerance,
        repeat=repeat,
        seconds=0.01 if options.quick else 0.05,
    )
    each = {"dot": 1 if options.quick else 5, "cg": 1 if options.quick else 15}
    return [
        Part(work, partial(measured, works=(work,)), each[work] * repeat, repeat)
        for work in (WORKS if options.work == "all" else (options.work,))
    ]
