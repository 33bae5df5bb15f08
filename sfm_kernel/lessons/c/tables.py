"""Tables of the measurements in C: speed-up, and ratios to a compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from sfm_kernel.lessons import c
from sfm_kernel.lessons.measure.rows import Row, grouped


def loops(measured: Sequence[Row]) -> list[Row]:
    """A row for each mechanism that computes pi: seconds, speed-up, ratio to the compiled loop."""
    times = medians(measured, ("mechanism", "processes"), "seconds")
    table = []
    for (mechanism, n), (seconds, _) in times.items():
        row: Row = {"mechanism": mechanism, "processes": n, "seconds": seconds}
        if (mechanism, 1) in times:
            row["speedup"] = times[mechanism, 1][0] / seconds
        if (c.GCC, n) in times:
            row["times_compiled"] = seconds / times[c.GCC, n][0]
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


def medians(
    measured: Sequence[Row], keys: Sequence[str], value: str, fastest: str | None = None
) -> dict[tuple[Any, ...], tuple[float, float]]:
    """For each combination of ``keys``: the median of a column, and the minimum of another."""
    return {
        key: (median(row[value] for row in group), min(row[fastest or value] for row in group))
        for key, group in grouped(measured, keys).items()
    }
