"""The NAS Parallel Benchmarks as patterns of messages and of times in which ranks compute.

Sixteen ranks, 0 to 7 at one site and 8 to 15 at another, as in the paper, in class B; only FT is
smaller, so that an iteration ends within seconds. A rank's iteration is a list of steps: a number
(seconds of computing), or an exchange: receivers with numbers of bytes, and senders. To compute is
to sleep, as long as the paper's processors had to compute.

The messages between the sites in an iteration are those of the paper's Table 2; a test compares.

Sources: the messages, NPB 2.4's Fortran (copy_faces, x_solve, exch_proc, transpose, comm3,
exchange_1, exchange_3); sizes and times, Glück and Mignot, Tables 2, 3 and 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

RANKS, EDGE = 16, 4
"""The number of ranks, and the number along each side of their square."""

Exchange = tuple[list[tuple[int, int]], list[int]]
Step = float | Exchange


class Pattern(NamedTuple):
    """One of the eight benchmarks.

    Attributes:
        iteration: returns the steps of a rank.
        iterations: the iterations of class B; ``shown``: the number that is measured.
        expected: the paper's description of the messages, and their class (Table 3).
    """

    iteration: Callable[[int], list[Step]]
    iterations: int
    shown: int
    expected: str


def _swap(partner: int, nbytes: int) -> Step:
    return ([(partner, nbytes)], [partner])


def _shift(to: int, nbytes: int, source: int) -> Step:
    return ([(to, nbytes)], [source])


def _send_all(to: list[int], nbytes: int) -> Step:
    """Send as many bytes to each of these ranks, and receive from each of them."""
    return ([(rank, nbytes) for rank in to], to)


def _rank_at(row: int, column: int) -> int:
    return row % EDGE * EDGE + column % EDGE


def neighbours(rank: int) -> list[tuple[int, int]]:
    """Predecessor and successor in each of the three directions of a multipartition (BT, SP)."""
    row, column = divmod(rank, EDGE)
    return [
        (_rank_at(row, column - 1), _rank_at(row, column + 1)),
        (_rank_at(row - 1, column), _rank_at(row + 1, column)),
        (_rank_at(row - 1, column + 1), _rank_at(row + 1, column - 1)),
    ]


def _multipartition(rank: int, face: int, forward: int, back: int, compute: float) -> list[Step]:
    """Each rank has a cell in every slice of every direction, so that all work in all sweeps.

    A rank does half of its computing before the exchange of faces, and half in the sweeps.
    """
    around = neighbours(rank)
    all_neighbours = [neighbour for both in around for neighbour in both]
    steps: list[Step] = [compute / 2, _send_all(all_neighbours, face)]
    stages = EDGE - 1
    for before, after in around:
        for _ in range(stages):
            steps += [compute / 2 / 3 / (2 * stages), _shift(after, forward, before)]
        for _ in range(stages):
            steps += [compute / 2 / 3 / (2 * stages), _shift(before, back, after)]
    return steps


def bt(rank: int) -> list[Step]:
    """Block tridiagonal: 80 messages of 160 kB and 48 of 26 kB between sites; 0.7 s to compute."""
    return _multipartition(rank, 160_000, 160_000, 26_000, 0.7)


def sp(rank: int) -> list[Step]:
    """Scalar pentadiagonal: 80 messages of 100 to 160 kB and 48 of 45 to 54 kB; 0.4 s."""
    return _multipartition(rank, 160_000, 110_000, 50_000, 0.4)


def cg(rank: int) -> list[Step]:
    """Conjugate gradient, one of 25 steps of an iteration: sums in rows, and a transposition.

    Rows are within a site; of the transposition's 16 messages of 150 kB, 8 go between sites.
    """
    row, column = divmod(rank, EDGE)
    halves = [_rank_at(row, column ^ bit) for bit in (1, 2)]
    steps: list[Step] = [0.03]
    steps += [_swap(partner, 150_000) for partner in halves]
    if row != column:
        steps.append(_swap(_rank_at(column, row), 150_000))
    return steps + [_swap(partner, 8) for _ in range(2) for partner in halves]


def ep(rank: int) -> list[Step]:
    """Embarrassingly parallel: computes, and adds up at the end."""
    return [1.5, *_allreduce(rank, 16), *_allreduce(rank, 16), *_allreduce(rank, 80)]


def _allreduce(rank: int, nbytes: int) -> list[Step]:
    """Recursive doubling, as in MPICH, which the paper has measured, and which ignores sites."""
    return [_swap(rank ^ bit, nbytes) for bit in (1, 2, 4, 8)]


def _alltoall(rank: int, nbytes: int) -> Step:
    others = [(rank + apart) % RANKS for apart in range(1, RANKS)]
    return _send_all(others, nbytes)


def ft(rank: int) -> list[Step]:
    """Fourier transform: every rank sends each other 0.5 MB, as in class A (B: 2 MB); 1.2 s."""
    return [1.2, _alltoall(rank, 1 << 19), *_allreduce(rank, 16)]


def is_(rank: int) -> list[Step]:
    """Integer sort: ranks add up and exchange the sizes of buckets, then send all keys to them."""
    return [1.1, *_allreduce(rank, 4116), _alltoall(rank, 4), _alltoall(rank, 525_000)]


PLANES = 100
"""Planes of LU's cube; in each a wave goes from corner to corner and back."""


def lu(rank: int) -> list[Step]:
    """Lower-upper: waves of 1 kB messages, each plane's after the one before; then faces of 200 kB.

    A complete iteration of class B. Computing takes 0.7 ms for a plane.
    """
    row, column = divmod(rank, EDGE)
    west, east = ([rank + by] if 0 <= column + by < EDGE else [] for by in (-1, 1))
    north, south = ([rank + by * EDGE] if 0 <= row + by < EDGE else [] for by in (-1, 1))
    steps: list[Step] = []
    for sources, targets in ((north + west, south + east), (south + east, north + west)):
        for _ in range(PLANES):
            steps += [([], sources), 0.0007, ([(target, 1000) for target in targets], [])]
    faces = [*north, *south, *west, *east]
    return [*steps, 0.1, _send_all(faces, 200_000)]


LEVELS = 8


def mg(rank: int) -> list[Step]:
    """Multigrid: halos of 2 x 2 x 4 boxes, on grids that halve down to 2 points, and double again.

    The direction that is divided into four goes through both sites, and is periodic.
    """
    levels = [*range(1, LEVELS), LEVELS - 1]
    levels += [level for level in range(LEVELS - 2, -1, -1) for _ in range(2)]
    steps: list[Step] = []
    for level in (*levels, 0):
        steps += [0.08 / 8**level, *_halo(rank, max(256 >> level, 2))]
    return steps


def _halo(rank: int, points: int) -> list[Step]:
    counts = (2, 2, 4)
    position = (rank % 2, rank // 2 % 2, rank // 4)
    box = [max(points // count, 1) + 2 for count in counts]
    steps: list[Step] = []
    for axis in range(3):
        nbytes = box[axis - 1] * box[axis - 2] * 8
        both = []
        for by in (-1, 1):
            x, y, z = ((position[n] + by * (n == axis)) % counts[n] for n in range(3))
            both.append(x + 2 * y + 4 * z)
        steps.append(_send_all(both, nbytes))
    return steps


PATTERNS = {
    "BT": Pattern(bt, 200, 4, "medium, often"),
    "CG": Pattern(cg, 1950, 30, "medium, very often, in bursts"),
    "EP": Pattern(ep, 1, 2, "next to nothing"),
    "FT": Pattern(ft, 22, 3, "large, seldom, in bursts"),
    "IS": Pattern(is_, 11, 3, "large, seldom, in bursts"),
    "LU": Pattern(lu, 250, 3, "small, very often"),
    "MG": Pattern(mg, 20, 6, "medium, very often, in bursts"),
    "SP": Pattern(sp, 400, 6, "medium, often"),
}


def between_sites(pattern: Pattern) -> list[int]:
    """The bytes of each message of an iteration that goes from one site to the other."""
    return [
        nbytes
        for rank in range(RANKS)
        for step in pattern.iteration(rank)
        if isinstance(step, tuple)
        for to, nbytes in step[0]
        if site(to) != site(rank)
    ]


def site(rank: int) -> int:
    """The site of a rank: 0 or 1."""
    return rank // (RANKS // 2)


def computing(steps: Iterable[Step]) -> float:
    """The seconds that one rank computes in these steps."""
    return sum(step for step in steps if isinstance(step, float))


def played(pattern: Pattern, iterations: int = 1) -> list[int]:
    """The number of messages that each rank receives in complete iterations of the pattern.

    Raises:
        ValueError: some ranks would wait for ever, or not all messages are received.
    """
    todo = [iter(pattern.iteration(rank) * iterations) for rank in range(RANKS)]
    waiting: list[list[int] | None] = [[] for _ in range(RANKS)]
    under_way: dict[tuple[int, int], int] = {}
    received, moved = [0] * RANKS, True
    while moved:
        moved = False
        for rank in range(RANKS):
            while (sources := waiting[rank]) is not None:
                while sources and under_way.get((sources[0], rank)):
                    under_way[sources.pop(0), rank] -= 1
                    received[rank] += 1
                if sources:
                    break
                moved, step = True, next(todo[rank], None)
                waiting[rank] = None if step is None else []
                if isinstance(step, tuple):
                    waiting[rank] = list(step[1])
                    for to, _ in step[0]:
                        under_way[rank, to] = under_way.get((rank, to), 0) + 1
    if any(sources is not None for sources in waiting) or any(under_way.values()):
        stuck = [rank for rank, sources in enumerate(waiting) if sources]
        raise ValueError(f"ranks {stuck} wait for ever")
    return received
