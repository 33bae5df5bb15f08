"""Laws for the times of reductions: two laws of growth, and a model in the style of LogGP.

This module does not measure: functions take medians and return numbers. Times are in microseconds.

LogGP describes a network by four numbers: the latency L of a message, the overhead o of its sender
and of its receiver, the gap g between two messages of one process, and the Gap per byte G of long
messages. In the times of reductions only L + 2o (a message that others wait for), max(o, g) (one
more message of a process that is busy with messages) and G occur, so these three are fitted. G
includes the reduction's work on the bytes, the addition.

Sources: Alexandrov, Ionescu, Schauser, Scheiman, "LogGP: Incorporating Long Messages into the LogP
Model" (1995). Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
MPICH" (2005), section 4. Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP
Implementation of the SPEEDES Communications Library", section 3.1: the tree of flags, and why it
should follow log2. ``sfm_kernel.collectives`` has the messages of each algorithm, one a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sfm_kernel.collectives.area import CHUNK
from sfm_kernel.collectives.flags import ROOM
from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.rows import Row, grouped

# Laws of growth

LAWS: dict[str, Callable[[float], float]] = {"log2": math.log2, "linear": float}
"""Law -> f(p) of t(p) = a + b·f(p)."""


class Fit(NamedTuple):
    """A law through measured times, by least squares."""

    law: str
    a: float
    """µs."""
    b: float
    """µs for each doubling ("log2") or each process ("linear")."""
    residual: float
    """µs: root of the mean squared distance between law and measurement."""
    relative: float
    """The residual divided by the mean of the times."""
    r2: float
    """The fraction of the variance that the law explains."""

    def at(self, processes: float) -> float:
        """The law's time for a number of processes, µs."""
        return self.a + self.b * LAWS[self.law](processes)


def fit(law: str, times: Mapping[int, float]) -> Fit:
    """The law that comes closest to these times.

    Args:
        law: a key of ``LAWS``.
        times: processes -> µs; three numbers of processes or more, since a law of two numbers
            goes through any two points.
    Raises:
        ValueError: there are fewer.
    """
    if len(times) < 3:
        raise ValueError(
            f"a law of two numbers goes through any {len(times)} points: measure three numbers "
            f"of processes or more, not {sorted(times)}"
        )
    t = np.array(list(times.values()), float)
    design = np.array([[1.0, LAWS[law](processes)] for processes in times])
    a, b = np.linalg.lstsq(design, t)[0]
    squared = float(np.mean((design @ (a, b) - t) ** 2))
    variance = float(np.var(t))
    residual = math.sqrt(squared)
    r2 = 1 - squared / variance if variance else 1.0  # times that are all the same
    return Fit(law, float(a), float(b), residual, residual / float(np.mean(t)), r2)


def growth(listed: Iterable[Row]) -> list[Row]:
    """Both laws for every algorithm: a row for each line of a plot, with residuals.

    Args:
        listed: rows of ``reductions.summary``; lines with fewer than three numbers of processes
            are left out.
    """
    table = []
    keys = ("transport", "cores", "bytes", "algorithm")
    for key, group in grouped(listed, keys).items():
        times = {row["processes"]: row["us"] for row in group}
        if len(times) < 3:
            continue
        row: Row = dict(zip(keys, key, strict=True))
        fits = [fit(law, times) for law in LAWS]
        for fitted in fits:
            row |= {
                f"{fitted.law} b_us": fitted.b,
                f"{fitted.law} residual_us": fitted.residual,
                f"{fitted.law} residual_%": 100 * fitted.relative,
                f"{fitted.law} R²": fitted.r2,
            }
        row["fits better"] = min(fits, key=lambda fitted: fitted.residual).law
        table.append(row)
    return table


# The model: the costs of a reduction


class Bill(NamedTuple):
    """The number of times that each price occurs on an algorithm's longest path."""

    steps: float
    """Messages that follow one another, each after the one before was received: L + 2o."""
    gaps: float
    """Further messages that one process sends or receives back to back: max(o, g)."""
    nbytes: float
    """Bytes beyond the first of each of these messages: G."""


def _linear(p: int, m: float) -> Bill:
    # The root takes p-1 messages and sends p-1; the others wait for it.
    return Bill(2, 2 * (p - 2), 2 * (p - 1) * _beyond(m))


def _binomial(p: int, m: float) -> Bill:
    levels = _levels(p)  # to the root, and from it again
    return Bill(2 * levels, 0, 2 * levels * _beyond(m))


def _recursive_doubling(p: int, m: float) -> Bill:
    # A rank beyond the largest power of two gives its part to another first, and gets the sum last.
    steps = _doublings(p) + (2 if _is_odd(p) else 0)
    return Bill(steps, 0, steps * _beyond(m))


def _ring(p: int, m: float) -> Bill:
    return Bill(2 * (p - 1), 0, 2 * (p - 1) * _beyond(m / p))


def _rabenseifner(p: int, m: float) -> Bill:
    # Halves, quarters, … are exchanged and added; then the same in reverse.
    halves = [m / 2**step for step in range(1, _doublings(p) + 1)]
    around = [m, m] if _is_odd(p) else []
    parts = [*halves, *halves, *around]
    return Bill(len(parts), 0, sum(map(_beyond, parts)))


def _flags(p: int, m: float) -> Bill:
    # In each round the last of four processes goes up the tree, and the last of all sets the flag
    # that all wait for. Larger arrays go through a shared area, in pieces of two rounds each.
    levels, below = 1, 4
    while below < p:
        levels, below = levels + 1, 4 * below
    rounds = 1 if m <= ROOM else 2 * math.ceil(m / CHUNK)
    return Bill(rounds * (levels + 1), 0, _beyond(m))


BILLS: dict[str, Callable[[int, float], Bill]] = {
    "linear": _linear,
    "binomial": _binomial,
    "recursive doubling": _recursive_doubling,
    "ring": _ring,
    "rabenseifner": _rabenseifner,
    "flags": _flags,
}
"""Algorithm -> its bill for an allreduce of m bytes on p processes, as ``sfm_kernel.collectives``
does it. The prices of "flags" are those of its tree: a level instead of a message."""

BACK_TO_BACK = "back to back"
"""Not a reduction: messages of m bytes from one process to another, one after the other."""


def bill(algorithm: str, processes: int, nbytes: float) -> Bill:
    """The bill of an allreduce."""
    if algorithm == BACK_TO_BACK:
        return Bill(0, 1, _beyond(nbytes))
    if processes == 1:
        return Bill(0, 0, 0)
    return BILLS[algorithm](processes, nbytes)


def messages(algorithm: str, processes: int) -> int | None:
    """The number of messages of all processes in an allreduce; None if there are none (flags).

    The longest path of a tree has few of them; a machine with fewer cores than processes pays for
    all.
    """
    p = processes
    inner = 2 ** _doublings(p)
    around = 2 * (p - inner)
    return {
        "linear": 2 * (p - 1),
        "binomial": 2 * (p - 1),
        "recursive doubling": inner * _doublings(p) + around,
        "ring": 2 * p * (p - 1),
        "rabenseifner": 2 * inner * _doublings(p) + around,
    }.get(algorithm)


def _beyond(nbytes: float) -> float:
    return max(nbytes - 1, 0)


def _levels(p: int) -> int:
    return (p - 1).bit_length()


def _doublings(p: int) -> int:
    return p.bit_length() - 1


def _is_odd(p: int) -> bool:
    return p & (p - 1) != 0


# The model: its prices


class Prices(NamedTuple):
    """The fitted prices of the model."""

    step: float
    """L + 2o, µs."""
    gap: float
    """max(o, g), µs."""
    byte: float
    """G, µs."""
    points: int
    """The number of medians that were fitted."""
    relative: float
    """Root of the mean squared relative distance between the model and these medians."""

    def us(self, algorithm: str, processes: int, nbytes: float) -> float:
        """The model's time for an allreduce, µs."""
        return self._of(bill(algorithm, processes, nbytes))

    def _of(self, due: Bill) -> float:
        return due.steps * self.step + due.gaps * self.gap + due.nbytes * self.byte


def prices(listed: Iterable[Row]) -> Prices:
    """The prices that come closest to these medians, in relative distance; none is below 0.

    Only rows count that the model can explain: an algorithm of ``BILLS`` or ``BACK_TO_BACK``, on
    no more processes than cores (or on two, whose prices on one core include taking turns). Pass
    rows of one transport only, and those of "flags" separately.

    Args:
        listed: rows of ``reductions.summary``.
    Raises:
        SFMError: there are no such rows of at least two sizes, which the price of a byte needs.
    """
    used = [
        row
        for row in listed
        if row["algorithm"] in (*BILLS, BACK_TO_BACK)
        and 1 < row["processes"] <= max(row["cores"], 2)
    ]
    if len({row["bytes"] for row in used}) < 2:
        raise SFMError(
            "the model is fitted to reductions of several sizes on at most as many processes as "
            "cores: measure 2 processes, with model_sizes"
        )
    due = np.array([bill(row["algorithm"], row["processes"], row["bytes"]) for row in used], float)
    t = np.array([row["us"] for row in used], float)
    scaled = due / t[:, None]  # relative distances: a microsecond weighs more in a short time
    found = nonnegative(scaled, np.ones(len(used)))
    relative = math.sqrt(float(np.mean((scaled @ found - 1) ** 2)))
    step, gap, byte = map(float, found)
    return Prices(step, gap, byte, len(used), relative)


def nonnegative(
    design: npt.NDArray[np.float64], target: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """x ≥ 0 with the least |design·x - target|.

    The solution is an unconstrained one of some columns, with the others at 0. There are few
    columns, so all choices are tried; of equally good ones the one with the fewest columns wins.
    """
    columns = design.shape[1]
    best, least = np.zeros(columns), float(np.linalg.norm(target))
    for size in range(1, columns + 1):
        for chosen in map(list, combinations(range(columns), size)):
            x = np.zeros(columns)
            x[chosen] = np.linalg.lstsq(design[:, chosen], target)[0]
            distance = float(np.linalg.norm(design @ x - target))
            if (x >= 0).all() and distance < least * (1 - 1e-9):
                best, least = x, distance
    return best


class LogGP(NamedTuple):
    """The model beyond this machine: prices of messages, and of the tree of flags."""

    message: Prices
    flags: Prices | None = None
    per_machine: int = 16
    """Processes on each machine, which in "two-level" meet in a tree of flags."""

    def algorithms(self) -> Sequence[str]:
        """The algorithms that the model knows for any number of processes."""
        known = [name for name in BILLS if name != "flags"]
        return known if self.flags is None else [*known, "two-level"]

    def us(self, algorithm: str, processes: int, nbytes: float) -> float:
        """The model's time for an allreduce, µs.

        Raises:
            ValueError: the model has no prices for this algorithm.
        """
        if algorithm not in self.algorithms():
            raise ValueError(
                f"the model has no prices for {algorithm!r} at any number of processes; it has "
                f"{', '.join(self.algorithms())}"
            )
        if algorithm != "two-level":
            return self.message.us(algorithm, processes, nbytes)
        assert self.flags is not None
        inside = self.flags.us("flags", min(processes, self.per_machine), nbytes)
        machines = -(-processes // self.per_machine)
        between = self.message.us("recursive doubling", machines, nbytes)
        return 2 * inside + between  # flags also distribute the result
