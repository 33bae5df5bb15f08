"""Conjugate gradients for Poisson's equation, the rows of the grid shared between engines.

-Δu = f inside the unit square, u = 0 on its edge. With m × m points inside, a distance of
h = 1/(m+1) apart, differences of neighbours approximate the second derivatives, and each point has
an equation: 4·u - the u of its four neighbours = h²·f. An engine holds a block of rows. To apply
the equations it needs one row of each neighbour (the halo); each dot product needs all engines.

Sources: Fedosov and Benson, "Communication with Super Flexible Messaging", section 3, whose
Example 2 is the dot product of such a solver; Hestenes and Stiefel, "Methods of conjugate
gradients for solving linear systems", 1952, section 3.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.errors import SFMError, pip_install
from sfm_kernel.lessons.measure.rows import Row, grouped

if TYPE_CHECKING:
    from sfm_kernel.collectives import Group
    from sfm_kernel.endpoint import Endpoint

Floats = NDArray[np.float64]
Ask = Callable[..., Any]
"""``ask(**job)`` -> the answer of engine 0, by attributes; see ``engines.driving``."""

EXAMPLE_2 = "example 2"
"""The allreduce of the paper, beside those of ``ALGORITHMS["allreduce"]``."""


# The problem


def block(n: int, rank: int, engines: int) -> range:
    """The rows (or elements) of n, counted from 0, that this engine holds: consecutive ones."""
    return range(rank * n // engines, (rank + 1) * n // engines)


def points(m: int) -> Floats:
    """The m coordinates inside (0, 1): h, 2h, …"""
    return np.arange(1, m + 1) / (m + 1)


def exact(m: int, rows: range) -> Floats:
    """u at these rows of the grid, shape (rows, m): x(1-x)·eˣ · y(1-y)·e⁻ʸ, y by row.

    It has no symmetry that would make the solver's work smaller. The solver would find
    sin(πx)·sin(πy) in a single step, and for a product of parabolas the differences are exact.
    """
    x, y = points(m), points(m)[rows.start : rows.stop, np.newaxis]
    u: Floats = x * (1 - x) * np.exp(x) * (y * (1 - y) * np.exp(-y))
    return u


def right_hand_side(m: int, rows: range) -> Floats:
    """h²·f at these rows of the grid, shape (rows, m), where f = -Δu of ``exact``."""
    x, y = points(m), points(m)[rows.start : rows.stop, np.newaxis]
    along_x = x * (x + 3) * np.exp(x) * (y * (1 - y) * np.exp(-y))
    along_y = x * (1 - x) * np.exp(x) * ((1 - y) * (4 - y) * np.exp(-y))
    f: Floats = along_x + along_y
    return f / (m + 1) ** 2


def matrix(m: int) -> Any:
    """The equations of all m·m points, row by row of the grid, as a sparse array of SciPy.

    Raises:
        SFMError: SciPy is not installed.
    """
    try:
        from scipy import sparse
    except ImportError:
        raise SFMError(f"the matrix needs SciPy: {pip_install('scipy>=1.13')}") from None
    line = sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(m, m))
    return sparse.kronsum(line, line, format="csr")


def apply(p: Floats, out: Floats) -> None:
    """The matrix times p, without the matrix.

    Args:
        p: shape (rows + 2, m). The first and the last row are those of the neighbours; at the
            edge of the square they are 0.
        out: shape (rows, m), the result.
    """
    inner = p[1:-1]
    np.multiply(inner, 4.0, out=out)
    out -= p[:-2]
    out -= p[2:]
    out[:, 1:] -= inner[:, :-1]
    out[:, :-1] -= inner[:, 1:]


def iteration_bound(m: int, tolerance: float) -> int:
    """Iterations after which the residual must be below ``tolerance``, without rounding errors.

    The error shrinks by 2·((√κ-1)/(√κ+1))ᵏ in the matrix's own norm, in which the residual is
    longer by √κ at most; √κ = cot(πh/2) is the square root of the matrix's condition.
    """
    root = 1 / math.tan(math.pi / (2 * (m + 1)))
    if root <= 1 + 1e-9:  # a single point
        return 1
    return math.ceil(math.log(tolerance / (2 * root)) / math.log((root - 1) / (root + 1)))


# Sums over engines


def allreduce(sfm: Endpoint, group: Group, part: float, algorithm: str | None) -> float:
    """The sum of all engines' parts, on every engine; ``algorithm`` may be ``EXAMPLE_2``."""
    if algorithm == EXAMPLE_2:
        return example_2(sfm, group, part)
    return float(group.allreduce(part, operator.add, algorithm=algorithm))


def example_2(sfm: Endpoint, group: Group, part: float) -> float:
    """The naive allreduce inside the paper's Example 2: all send to the root, which answers all.

    As in the paper, the root takes the parts in the order in which they come. So the last digits of
    the sum may change from call to call, and two groups with the same root must not add at the same
    time. A part of the group's next call cannot come too early: its sender has its answer. The
    paper's last line returns a name that was never set; the sum is meant.
    """
    root, *others = group.members
    if group.rank != 0:
        sfm.send(dest=root, tag="pdot", result=part)
        return float(sfm.recv(src=root, tag="allreduce").result)
    for _ in others:
        part += sfm.recv(tag="pdot").result
    for other in others:
        sfm.send(dest=other, tag="allreduce", result=part)
    return part


# The solver


@dataclass
class Times:
    """Seconds of an engine: in all, for the exchange of rows, for the sums of dot products.

    The last two include waiting for slower engines.
    """

    total: float = 0.0
    halo: float = 0.0
    allreduce: float = 0.0

    @property
    def communication(self) -> float:
        """The share of the time for messages and waiting for them, 0 to 1."""
        return (self.halo + self.allreduce) / self.total if self.total else 0.0

    @property
    def halo_alone(self) -> float:
        """The share of the time for the exchange of rows, 0 to 1."""
        return self.halo / self.total if self.total else 0.0


class Solver:
    """One engine's part of the solver. Every engine of the group creates one and makes its calls.

    Args:
        m: points along one side of the grid; at least one row for each engine.
        algorithm: of the dot products' allreduce: ``EXAMPLE_2``, one of
            ``ALGORITHMS["allreduce"]`` that takes single numbers, or None.
    Raises:
        ValueError: there are fewer rows than engines; nothing was sent.

    ``x`` is the engine's part of the solution so far, shape (len(rows), m). ``residual`` is the
    length of the residual, divided by that of the right-hand side; all engines have the same.
    """

    def __init__(self, sfm: Endpoint, group: Group, m: int, algorithm: str | None = None) -> None:
        check_grid(m, group.size)
        self._sfm, self._group, self._algorithm = sfm, group, algorithm
        self._before = group.members[group.rank - 1] if group.rank > 0 else None
        self._after = group.members[group.rank + 1] if group.rank + 1 < group.size else None
        self.m, self.rows = m, block(m, group.rank, group.size)
        self.times, self.iterations = Times(), 0
        self.x = np.zeros((len(self.rows), m))
        self._r = right_hand_side(m, self.rows)
        self._p = np.zeros((len(self.rows) + 2, m))
        self._p[1:-1] = self._r
        self._q = np.empty_like(self._r)
        self._rho = self._dot(self._r, self._r)
        self._length = math.sqrt(self._rho)
        self.times = Times()

    @property
    def residual(self) -> float:
        return math.sqrt(self._rho) / self._length

    def advance(self, iterations: int, tolerance: float) -> None:
        """Iterate until the residual is at most ``tolerance``, or ``iterations`` times."""
        self._group.barrier()  # otherwise the first engine's time would include waiting for others
        started = perf_counter()
        for _ in range(iterations):
            if self.residual <= tolerance:
                break
            self._iterate()
        self.times.total += perf_counter() - started

    def _iterate(self) -> None:
        p, q = self._p[1:-1], self._q
        self._exchange(self._p)
        apply(self._p, out=q)
        alpha = self._rho / self._dot(p, q)
        self.x += alpha * p
        self._r -= alpha * q
        before, self._rho = self._rho, self._dot(self._r, self._r)
        p *= self._rho / before
        p += self._r
        self.iterations += 1

    def _dot(self, a: Floats, b: Floats) -> float:
        product = float(np.vdot(a, b))
        started = perf_counter()
        result = allreduce(self._sfm, self._group, product, self._algorithm)
        self.times.allreduce += perf_counter() - started
        return result

    def _exchange(self, p: Floats) -> None:
        """Put the neighbours' rows at both ends of p.

        All send before they receive, unless buffers cannot hold a few rows: then engines of odd
        rank receive first. Rows of two iterations are not confused, since messages do not overtake.
        """
        started = perf_counter()
        scarce = self._sfm.buffering < 4 * 8 * self.m + 4096  # bytes
        if scarce and self._group.rank % 2 == 1:
            self._receive(p)
            self._send(p)
        else:
            self._send(p)
            self._receive(p)
        self.times.halo += perf_counter() - started

    def _send(self, p: Floats) -> None:
        for neighbour, row in ((self._before, p[1]), (self._after, p[-2])):
            if neighbour is not None:
                self._sfm.send(dest=neighbour, tag="halo", row=row)

    def _receive(self, p: Floats) -> None:
        for neighbour, row in ((self._before, p[0]), (self._after, p[-1])):
            if neighbour is not None:
                row[:] = self._sfm.recv(src=neighbour, tag="halo").row

    def true_residual(self) -> float:
        """The residual, computed from ``x``: the solver only updates it. Not timed."""
        times, self.times = self.times, Times()
        padded = np.zeros_like(self._p)
        padded[1:-1] = self.x
        self._exchange(padded)
        apply(padded, out=self._q)
        rest = right_hand_side(self.m, self.rows) - self._q
        rho, self.times = self._dot(rest, rest), times
        return math.sqrt(rho) / self._length

    def error(self) -> float:
        """The largest distance of any engine's ``x`` from the exact u."""
        return float(
            self._group.allreduce(float(np.abs(self.x - exact(self.m, self.rows)).max()), max)
        )


def check_grid(m: int, engines: int) -> None:
    """Raise ValueError if the grid has fewer rows than there are engines."""
    if m < engines or m < 1:
        raise ValueError(
            f"{engines} engines cannot share {m} rows: let m be {max(engines, 1)} or more"
        )


def solve(
    sfm: Endpoint, group: Group, m: int, tolerance: float = 1e-8, algorithm: str | None = None
) -> Solver:
    """Solve until the residual is at most ``tolerance``; return the solver, on every engine.

    Raises:
        ValueError: there are fewer rows than engines, or the tolerance is not above 0.
        SFMError: the residual is larger after as many iterations as theory allows.
    Example:
        >>> sfm_kernel.run(lambda sfm: cg.solve(sfm, Group(sfm), m=31).x, n=4)  # doctest: +SKIP
    """
    check_tolerance(tolerance)
    solver = Solver(sfm, group, m, algorithm)
    solver.advance(iteration_bound(m, tolerance), tolerance)
    check_converged(m, solver.iterations, solver.residual, tolerance)
    return solver


def check_tolerance(tolerance: float) -> None:
    """Raise ValueError unless a relative residual can reach the tolerance, and begins above it."""
    if not 1e-14 <= tolerance < 1:
        raise ValueError(f"the tolerance is between 1e-14 (rounding) and 1, not {tolerance}")


def check_converged(m: int, iterations: int, residual: float, tolerance: float) -> None:
    """Raise SFMError if the solver should have reached ``tolerance`` and has not."""
    if residual > tolerance and iterations >= iteration_bound(m, tolerance):
        raise SFMError(
            f"conjugate gradients on {m} × {m} points: residual {residual:.1e} after {iterations} "
            f"iterations, but {tolerance:.1e} was due. Do all engines get the same sums?"
        )


# The part of the benchmark that home drives


def rows(
    ask: Ask,
    m: int,
    algorithm: str,
    engines: int,
    number: int,
    tolerance: float,
    every: int,
) -> Iterator[Row]:
    """Solve on engines that serve ``dot``; yield a row after each ``every`` iterations.

    The columns are described at ``dot.rows``.
    """
    ask = partial(ask, engines=engines)
    begin, done = True, False
    while not done:
        now = ask(
            work="solve", m=m, algorithm=algorithm, begin=begin, iterations=every,
            tolerance=tolerance,
        )  # fmt: skip
        check_converged(m, now.iterations, now.residual, tolerance)
        begin, done = False, now.residual <= tolerance
        totals, shares, halos = zip(*now.times, strict=True)
        row = {
            "what": "cg",
            "m": m,
            "unknowns": m * m,
            "engines": engines,
            "algorithm": algorithm,
            "round": number,
            "iteration": now.iterations,
            "residual": now.residual,
            "seconds": max(totals),
            "share": mean(shares),
            "share_max": max(shares),
            "halo_share": mean(halos),
            "done": done,
        }
        if done:
            checked = ask(work="check")
            row |= {"true_residual": checked.true_residual, "error": checked.error}
        yield row


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each configuration, over all rounds; see ``dot.summary``."""
    solved = [row for row in measured if row["what"] == "cg" and row["done"]]
    groups = grouped(solved, ("m", "algorithm", "engines"))
    fastest = {key: min(row["seconds"] for row in group) for key, group in groups.items()}
    return [
        {
            "what": "cg",
            "m": m,
            "algorithm": algorithm,
            "engines": engines,
            "iterations": group[0]["iteration"],
            "ms": median(row["seconds"] for row in group) * 1e3,
            "fastest_ms": fastest[m, algorithm, engines] * 1e3,
            "speedup": fastest[m, algorithm, 1] / fastest[m, algorithm, engines],
            "share": median(row["share"] for row in group),
            "share_max": median(row["share_max"] for row in group),
            "halo_share": median(row["halo_share"] for row in group),
            "true_residual": max(row["true_residual"] for row in group),
            "error": max(row["error"] for row in group),
        }
        for (m, algorithm, engines), group in groups.items()
    ]
