"""pi by numerical integration, shared between the engines.

The area under 4/(1+x²) between 0 and 1 is pi. The midpoint rule cuts it into n rectangles; each
engine adds up the areas of its rectangles, and engine 0 adds up the engines' sums.

Source: Chou, Nestinger and Cheng, "Ch MPI: Interpretive Parallel Computing in C", Fig. 4 and 5.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING

from sfm_kernel.lessons.measure.arguments import at_least, numbers
from sfm_kernel.lessons.measure.engines import (
    START_SECONDS,
    answering,
    broadcast,
    chosen_engines,
    driving,
    rank_of,
)
from sfm_kernel.lessons.measure.machine import usable_cores
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

PI25 = Decimal("3.141592653589793238462643")
"""pi to 25 digits, the paper's PI25DT. A float holds 16 digits; a Decimal holds all."""

PAPER_INTERVALS = 4_800_000
SPLITS = ("spaced", "blocks")
INTERVALS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, PAPER_INTERVALS)


# The work of one engine


def share(n: int, rank: int, engines: int, split: str = "spaced") -> range:
    """The intervals, counted from 1 to n, that this engine computes.

    ``"spaced"``: rank+1, rank+1+engines, … as in Fig. 4. ``"blocks"``: consecutive intervals, as
    in the paper's cpi_parallel.c.
    """
    if split == "spaced":
        return range(rank + 1, n + 1, engines)
    return range(rank * n // engines + 1, (rank + 1) * n // engines + 1)


def area_python(n: int, intervals: range) -> float:
    """Area of these rectangles of n, in a plain loop."""
    h = 1.0 / n
    total = 0.0
    for i in intervals:
        x = h * (i - 0.5)
        total += 4.0 / (1.0 + x * x)
    return h * total


def area_numpy(n: int, intervals: range, chunk: int = 65_536) -> float:
    """Area of these rectangles, with NumPy, ``chunk`` at a time, which bounds the memory."""
    import numpy as np

    h = 1.0 / n
    total = 0.0
    for start in range(0, len(intervals), chunk):
        few = intervals[start : start + chunk]
        x = h * (np.arange(few.start, few.stop, few.step) - 0.5)
        total += float(np.sum(4.0 / (1.0 + x * x)))
    return h * total


KERNELS: dict[str, Callable[[int, range], float]] = {"python": area_python, "numpy": area_numpy}


def error_of(pi: float) -> Decimal:
    """Distance from pi, exact to 24 decimals."""
    return abs(Decimal(pi) - PI25)


def error_bound(n: int) -> float:
    """The largest error that the midpoint rule can make here: h²/24 · max|f''| = 1/(3n²)."""
    return 1.0 / (3.0 * n * n)


# The program that every engine runs


def serve(sfm: Endpoint, home: str = "home") -> None:
    """The loop of Fig. 4: compute pi for one n after another, until n is 0.

    Run it in every engine. The paper's process 0 asks its user for n and prints pi; engine 0
    receives a job from ``home`` and sends pi to home.
    """
    rank = rank_of(sfm)
    while True:
        job = sfm.recv(src=home if rank == 0 else 0, tag="cpi job")
        with answering(sfm, "cpi", job) as answer:
            started = time.perf_counter()
            broadcast(sfm, job)
            if job.n == 0:
                return
            intervals = share(job.n, rank, job.engines, job.split)
            answer["pi"] = reduce_sum(sfm, job, KERNELS[job.kernel](job.n, intervals))
            answer["seconds"] = time.perf_counter() - started


def reduce_sum(sfm: Endpoint, job: Message, part: float) -> float:
    """On engine 0 the sum of all parts, added in the order of the ranks; on others their part."""
    if sfm.rank != 0:
        sfm.send(dest=0, tag="cpi part", number=job.number, part=part)
        return part
    for rank in range(1, job.engines):
        part += sfm.recv(src=rank, tag="cpi part", number=job.number).part
    return part


# The sweep, driven from home


def rows(
    engines: int | None = None,
    *,
    home: Endpoint | None = None,
    intervals: Sequence[int] = INTERVALS,
    kernels: Sequence[str] = tuple(KERNELS),
    split: str = "spaced",
    repeat: int = 5,
) -> Iterator[Row]:
    """Measure every n on 1, 2, … engines; yield a row as soon as each measurement is done.

    Without ``home``, local processes are started (4 by default). With ``home`` (the endpoint of
    a notebook), the engines of its world are used (all by default), which must run
    ``serve(sfm)``; they return from it when the rows end.

    Repeats are interleaved: each round measures every configuration once, so that a slow moment
    of the machine affects all of them. ``speedup`` compares with one engine in the same round.
    Nothing is measured while the caller handles a row.

    Columns: n, engines, kernel, split, round, pi, error (distance from pi), seconds (from the
    first message that engine 0 sends to the last that it receives), speedup, efficiency.

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, or one of them failed.
    """
    engines, available = chosen_engines("cpi", engines, home)
    _check(intervals, kernels, split, repeat)
    with driving("cpi", serve, available, home, stop={"n": 0}) as ask:
        # Not measured: the first messages open the routes, the first call imports NumPy.
        for kernel in kernels:
            ask(timeout=START_SECONDS, n=1, engines=available, kernel=kernel, split=split)
        for number in range(repeat):
            for kernel, n in product(kernels, intervals):
                alone = 0.0
                for count in engine_counts(engines):
                    done = ask(n=n, engines=count, kernel=kernel, split=split)
                    alone = alone or done.seconds
                    yield {
                        "n": n,
                        "engines": count,
                        "kernel": kernel,
                        "split": split,
                        "round": number,
                        "pi": done.pi,
                        "error": float(error_of(done.pi)),
                        "seconds": done.seconds,
                        "speedup": alone / done.seconds,
                        "efficiency": alone / done.seconds / count,
                    }


def _check(intervals: Sequence[int], kernels: Sequence[str], split: str, repeat: int) -> None:
    if not intervals or min(intervals) < 1:
        raise ValueError(f"n must be at least 1 interval, not {list(intervals)}")
    if repeat < 1:
        raise ValueError(f"repeat must be at least 1 round, not {repeat}")
    for kernel in kernels:
        if kernel not in KERNELS:
            raise ValueError(f"no kernel {kernel!r}; there are {', '.join(KERNELS)}")
    if split not in SPLITS:
        raise ValueError(f"no split {split!r}; there are {', '.join(SPLITS)}")


def engine_counts(engines: int) -> list[int]:
    """1, 2, 3, 4, then powers of two, up to and including ``engines``."""
    small = [count for count in (1, 2, 3, 4) if count < engines]
    powers = [2**k for k in range(3, engines.bit_length()) if 2**k < engines]
    return [*small, *powers, engines]


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each configuration, over all rounds: medians of error and time, fastest time.

    Speed-up and efficiency compare fastest times, which other programs disturb least.
    """
    groups = grouped(measured, ("kernel", "n", "engines"))
    fastest = {key: min(row["seconds"] for row in group) for key, group in groups.items()}
    table = []
    for (kernel, n, engines), group in groups.items():
        speedup = fastest[kernel, n, 1] / fastest[kernel, n, engines]
        table.append(
            {
                "kernel": kernel,
                "n": n,
                "engines": engines,
                "error": median(row["error"] for row in group),
                "ms": median(row["seconds"] for row in group) * 1e3,
                "fastest_ms": fastest[kernel, n, engines] * 1e3,
                "speedup": speedup,
                "efficiency": speedup / engines,
            }
        )
    return table


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons cpi``."""
    parser.add_argument("--engines", type=at_least(1), default=4, metavar="N", help="up to N")
    parser.add_argument("--intervals", type=numbers, metavar="n,n,…", help="numbers of rectangles")
    parser.add_argument("--kernel", choices=[*KERNELS, "all"], default="all")
    parser.add_argument("--split", choices=SPLITS, default="spaced", help="of the intervals")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each kernel."""
    kernels = tuple(KERNELS) if options.kernel == "all" else (options.kernel,)
    repeat = options.repeat or (2 if options.quick else 5)
    measured = partial(
        rows,
        options.engines,
        intervals=options.intervals or (INTERVALS[:4] if options.quick else INTERVALS),
        split=options.split,
        repeat=repeat,
    )
    return [Part(name, partial(measured, kernels=(name,)), 1 + repeat, repeat) for name in kernels]


def plot(measured: Sequence[Row]) -> Figure:
    """Error against n; beside it, for the largest n, the speed-up of each kernel."""
    from sfm_kernel.plots import Error, Speedup, still

    largest = max(row["n"] for row in measured)
    engines = max(row["engines"] for row in measured)
    speedup = Speedup(engines, by="kernel", only={"n": largest}, cores=usable_cores())
    return still(measured, Error({row["n"] for row in measured}), speedup)
