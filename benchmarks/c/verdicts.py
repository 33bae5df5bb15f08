"""SFM's targets for C, beside its measurements on this machine; and the tables before that."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.c import parts
from benchmarks.verdict import Pair, having, verdict
from sfm_kernel.lessons import c
from sfm_kernel.lessons.c.tables import loops, medians, shared_out
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.pingpong.messages import SIZES

SECONDS = {parts.CHANGED: 0.4, parts.UNCHANGED: 0.2}
"""The longest time of a cell of four ranks, in seconds."""

LIMITS = {"8 B": 1.2, "64 kB": 1.0, "1 MB": 1.0, "64 MB": 1.0}
"""Size -> the largest ratio of a message's time in C to its time on MPICH."""

CROWDED = 0.1
REPEATED = 1.1
"""The largest ratio of the mean of a call in a loop to its mean on MPICH."""


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each target: its name, the worst measurement, figures, verdict.

    ``ratio`` compares medians over all rounds, ``by_fastest`` the fastest times of the same two.
    """
    part = partial(having, measured, "part")
    return [
        *_of_cells(part("cells")),
        *_of_loops(part("loops")),
        *_of_messages(part("messages")),
        *_of_crowds(part("crowds")),
        *_of_calls(part("calls")),
    ]


Times = dict[tuple[Any, ...], tuple[float, float]]


def _pair(case: str, times: Times, ours: tuple[Any, ...], other: tuple[Any, ...]) -> list[Pair]:
    if ours not in times or other not in times:
        return []
    (measured, fastest), (beside, fastest_beside) = times[ours], times[other]
    return [Pair(case, measured, beside, fastest, fastest_beside)]


def _of_cells(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "processes"), "seconds")
    found = []
    for cell, limit in SECONDS.items():
        pairs = [
            Pair(f"{n} processes", seconds * 1e6, limit * 1e6, fastest * 1e6, limit * 1e6)
            for (kind, n), (seconds, fastest) in times.items()
            if kind == cell
        ]
        found.append(verdict(f"{cell}: hello", 1.0, f"{limit:g} s", pairs))
    return found


def _of_loops(measured: Sequence[Row]) -> list[Row]:
    times = medians(
        [row | {"us": row["seconds"] * 1e6} for row in measured], ("processes", "mechanism"), "us"
    )
    counts = sorted({n for n, _ in times})
    found = []
    for mechanism, limit in ((c.FAST, 1.1), (c.CELL, 1.3), *((mechanism, None) for mechanism in
                             (c.PLAIN, c.NUMPY))):  # fmt: skip
        pairs = [
            pair
            for n in counts
            for pair in _pair(f"{n} processes", times, (n, mechanism), (n, c.GCC))
        ]
        found.append(verdict(f"loop of cpi, {mechanism}", limit, c.GCC, pairs))
    return found


def _of_messages(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "mechanism", "bytes"), "latency_us", "fastest_us")

    def compared(what: str, size: str) -> list[Pair]:
        both = [(what, mechanism, SIZES[size]) for mechanism in (c.C, c.C_MPICH)]
        return _pair(size, times, *both)

    return [
        *(
            verdict(f"C, {size} one way", limit, "MPICH", compared(c.ONE_WAY, size))
            for size, limit in LIMITS.items()
        ),
        verdict(
            "C, bandwidth", None, "MPICH",
            [pair for size in SIZES for pair in compared(c.STREAM, size)],
        ),
    ]  # fmt: skip


def _of_crowds(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "mechanism", "processes", "bytes"), "mean_us")
    found = []
    for call, limit in (*((call, CROWDED) for call in parts.TOGETHER), (parts.PAIRS, 1.0)):
        pairs = [
            pair
            for measured_call, mechanism, n, nbytes in times
            if measured_call == call and mechanism == c.C
            for pair in _pair(
                f"{n} processes" + (f", {nbytes:,} B" if call == parts.PAIRS else ""), times,
                (call, c.C, n, nbytes), (call, c.C_MPICH, n, nbytes),
            )
        ]  # fmt: skip
        found.append(verdict(f"C, {call}, crowded", limit, "MPICH", pairs))
    return found


def _of_calls(measured: Sequence[Row]) -> list[Row]:
    times = medians(measured, ("what", "mechanism", "processes", "bytes"), "mean_us")
    sizes = {nbytes: size for size, nbytes in SIZES.items()}
    pairs: dict[str, list[Pair]] = {}
    for what, mechanism, n, nbytes in times:
        if mechanism == c.C:
            case = f"{sizes.get(nbytes, f'{nbytes} B')}, {n} processes"
            both = [(what, library, n, nbytes) for library in (c.C, c.C_MPICH)]
            pairs.setdefault(what, []).extend(_pair(case, times, *both))
    return [verdict(f"C, {what} in a loop", REPEATED, "MPICH", of) for what, of in pairs.items()]


# The tables before the targets


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: one for each part that was measured, then the targets."""
    part = partial(having, measured, "part")
    found = {
        "One way (µs)": _beside(part("messages"), c.ONE_WAY, "latency_us"),
        "Bandwidth (Mbit/s)": _beside(part("messages"), c.STREAM, "bandwidth_mbit_s"),
        "Crowded (µs, means)": crowded(part("crowds")),
        "Calls in a loop (µs, means)": crowded(part("calls")),
        "pi, as in Tables 1 and 2": loops(part("loops")),
        "Matrix product": shared_out(part("matrices"), "all_seconds"),
        "Task farm": shared_out([row for row in part("farm") if row["what"] == c.FARM]),
        "Cells (s)": [
            {"what": what, "processes": n, "seconds": seconds, "fastest": fastest}
            for (what, n), (seconds, fastest) in medians(
                part("cells"), ("what", "processes"), "seconds"
            ).items()
        ],
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
