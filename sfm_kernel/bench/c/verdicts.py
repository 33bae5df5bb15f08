"""What SFM wants to be in C, beside what it is on this machine now; and the tables before that."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from sfm_kernel.bench import pingpong, targets
from sfm_kernel.bench.c import parts
from sfm_kernel.bench.messages import SIZES, THREE
from sfm_kernel.bench.rows import Row, grouped
from sfm_kernel.bench.targets import Pair, verdict

SECONDS = {parts.CHANGED: 0.4, parts.UNCHANGED: 0.2}
"""What a cell of four ranks may take."""

LIMITS = {"8 B": 1.2, "64 kB": 1.0, "1 MB": 1.0, "64 MB": 1.0}
"""Size -> what a message in C may take one way, in what it takes on MPICH."""

CROWDED = 0.1
TCP_CURVE = "pyzmq tcp curve"
SHARED = ((THREE, "bytes 64 kB"), (targets.SHM, targets.PICKLED, targets.BUFFERS))
ENCRYPTED = (
    ("bytes 1 kB", "bytes 1 MB", "array 1 MB", "bytes 16 MB", "array 16 MB"),
    (targets.TCP, TCP_CURVE),
)
"""Messages and mechanisms of ``pingpong`` that targets for Python are about."""


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each target: what, target, where it is furthest from it, figures, verdict.

    ``ratio`` compares medians over all rounds, ``by_fastest`` the fastest times of the same two.
    """
    return [
        *_of_cells(part(measured, "cells")),
        *_of_loops(part(measured, "loops")),
        *_of_messages(part(measured, "messages")),
        *_of_crowds(part(measured, "crowds")),
        *_of_python(part(measured, "python")),
    ]


def part(measured: Sequence[Row], name: str) -> list[Row]:
    """The rows of one part, as it made them."""
    return [
        {column: value for column, value in row.items() if column != "part"}
        for row in measured
        if row["part"] == name
    ]


def medians(
    measured: Sequence[Row], keys: Sequence[str], value: str, fastest: str | None = None
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """For rows that agree in ``keys``: the median of a column, and the least of another."""
    return {
        key: (median(row[value] for row in group), min(row[fastest or value] for row in group))
        for key, group in grouped(measured, keys).items()
    }


Times = dict[tuple[Any, ...], tuple[float, float]]


def _pair(at: str, times: Times, one: tuple[Any, ...], other: tuple[Any, ...]) -> list[Pair]:
    if one not in times or other not in times:
        return []
    (mine, mine_fastest), (theirs, theirs_fastest) = times[one], times[other]
    return [Pair(at, mine, theirs, mine_fastest, theirs_fastest)]


def _of_cells(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "processes"), "seconds")
    found = []
    for what, limit in SECONDS.items():
        pairs = [
            Pair(f"{n} processes", seconds * 1e6, limit * 1e6, fastest * 1e6, limit * 1e6)
            for (one, n), (seconds, fastest) in times.items()
            if one == what
        ]
        found.append(verdict(f"{what}: hello", 1.0, f"{limit:g} s", pairs))
    return found


def _of_loops(measured: Sequence[Row]) -> list[Row]:
    times = medians(
        [row | {"us": row["seconds"] * 1e6} for row in measured], ("processes", "mechanism"), "us"
    )
    counts = sorted({n for n, _ in times})
    found = []
    for mechanism, limit in ((parts.FAST, 1.1), (parts.CELL, 1.3), *((one, None) for one in
                             (parts.PLAIN, parts.NUMPY))):  # fmt: skip
        pairs = [
            pair
            for n in counts
            for pair in _pair(f"{n} processes", times, (n, mechanism), (n, parts.GCC))
        ]
        found.append(verdict(f"loop of cpi, {mechanism}", limit, parts.GCC, pairs))
    return found


def _of_messages(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "mechanism", "bytes"), "latency_us", "fastest_us")

    def compared(what: str, size: str) -> list[Pair]:
        both = [(what, mechanism, SIZES[size]) for mechanism in (parts.C, parts.C_MPICH)]
        return _pair(size, times, *both)

    return [
        *(
            verdict(f"C, {size} one way", limit, "MPICH", compared(parts.ONE_WAY, size))
            for size, limit in LIMITS.items()
        ),
        verdict(
            "C, bandwidth", None, "MPICH",
            [pair for size in SIZES for pair in compared(parts.STREAM, size)],
        ),
    ]  # fmt: skip


def _of_crowds(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "mechanism", "processes", "bytes"), "mean_us")
    found = []
    for what, limit in (*((what, CROWDED) for what in parts.TOGETHER), (parts.PAIRS, 1.0)):
        pairs = [
            pair
            for one, mechanism, n, nbytes in times
            if one == what and mechanism == parts.C
            for pair in _pair(
                f"{n} processes" + (f", {nbytes:,} B" if what == parts.PAIRS else ""), times,
                (what, parts.C, n, nbytes), (what, parts.C_MPICH, n, nbytes),
            )
        ]  # fmt: skip
        found.append(verdict(f"C, {what}, crowded", limit, "MPICH", pairs))
    return found


def _of_python(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("message", "mechanism"), "latency_us", "fastest_us")

    def row(message: str, limit: float, one: str, other: str, where: str = "") -> Row:
        pairs = _pair(message, times, (message, one), (message, other))
        return verdict(f"Python, {message}{where}, one way", limit, other, pairs)

    return [
        row(THREE, 0.5, targets.SHM, targets.PICKLED),
        row("bytes 64 kB", 1.2, targets.SHM, targets.BUFFERS),
        *(row(one, 1.2, targets.TCP, TCP_CURVE, " over tcp") for one in ENCRYPTED[0]),
    ]


# The tables before the targets


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: one for each part that was measured, then the targets."""
    found = {
        "One way (µs)": _beside(part(measured, "messages"), parts.ONE_WAY, "latency_us"),
        "Bandwidth (Mbit/s)": _beside(part(measured, "messages"), parts.STREAM, "bandwidth_mbit_s"),
        "Crowded (µs, means)": crowded(part(measured, "crowds")),
        "pi, as in Tables 1 and 2": loops(part(measured, "loops")),
        "Matrix product": shared_out(part(measured, "matrices"), "all_seconds"),
        "Task farm": shared_out(
            [row for row in part(measured, "farm") if row["what"] == parts.FARM]
        ),
        "Cells (s)": [
            {"what": what, "processes": n, "seconds": seconds, "fastest": fastest}
            for (what, n), (seconds, fastest) in medians(
                part(measured, "cells"), ("what", "processes"), "seconds"
            ).items()
        ],
        "Python, one way (µs)": _python(part(measured, "python")),
        "Targets (times in µs)": summary(measured),
    }
    return {title: table for title, table in found.items() if table}


def _beside(measured: Sequence[Row], what: str, value: str) -> list[Row]:
    names = {nbytes: size for size, nbytes in SIZES.items()}
    some = [row for row in measured if row["what"] == what]
    listed: dict[int, Row] = {}
    for (nbytes, mechanism), (middle, _) in medians(some, ("bytes", "mechanism"), value).items():
        row = listed.setdefault(nbytes, {"size": names.get(nbytes, f"{nbytes} B")})
        row[mechanism] = middle
    return [listed[nbytes] for nbytes in sorted(listed)]


def crowded(measured: Sequence[Row]) -> list[Row]:
    """A row for each call of many ranks: the means of all libraries."""
    listed: dict[tuple[Any, ...], Row] = {}
    keys = ("what", "processes", "bytes", "mechanism")
    for (*about, mechanism), (mean, _) in medians(measured, keys, "mean_us").items():
        row = listed.setdefault(tuple(about), dict(zip(keys, about, strict=False)))
        row[mechanism] = mean
    return list(listed.values())


def loops(measured: Sequence[Row]) -> list[Row]:
    """A row for each way to compute pi: seconds, speed-up, and times the compiled loop."""
    times = medians(measured, ("mechanism", "processes"), "seconds")
    table = []
    for (mechanism, n), (seconds, _) in times.items():
        row: Row = {"mechanism": mechanism, "processes": n, "seconds": seconds}
        if (mechanism, 1) in times:
            row["speedup"] = times[mechanism, 1][0] / seconds
        if (parts.GCC, n) in times:
            row["times_compiled"] = seconds / times[parts.GCC, n][0]
        table.append(row)
    return table


def shared_out(measured: Sequence[Row], *more: str) -> list[Row]:
    """A row for each library and number of workers: median seconds, and speed-up by the fastest."""
    keys = ("mechanism", "workers")
    times = medians(measured, keys, "seconds")
    others = {column: medians(measured, keys, column) for column in more}
    table = []
    for (mechanism, workers), (seconds, fastest) in times.items():
        row: Row = {"mechanism": mechanism, "workers": workers, "seconds": seconds}
        row |= {column: found[mechanism, workers][0] for column, found in others.items()}
        if (mechanism, 1) in times:
            row["speedup"] = times[mechanism, 1][1] / fastest
        table.append(row)
    return table


def _python(measured: Sequence[Row]) -> list[Row]:
    listed: dict[str, Row] = {}
    for row in pingpong.summary(measured):
        one = listed.setdefault(row["message"], {"message": row["message"]})
        one[row["mechanism"]] = row["latency_us"]
    return list(listed.values())
