"""Compares libraries, and a measurement with its target: lines of a table."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from sfm_kernel.lessons.measure.rows import Row, grouped


class Pair(NamedTuple):
    """Two medians to compare, and two fastest times; ``at`` names the measured case."""

    at: str
    measured: float
    beside: float
    fastest: float | None = None
    fastest_beside: float | None = None


def verdict(what: str, limit: float | None, beside: str, pairs: Sequence[Pair]) -> Row:
    """A line of the table, for the pair with the largest ratio; without a limit no verdict."""
    row: Row = {
        "what": what,
        "target": f"≤ {limit:g} × {beside}" if limit is not None else f"stated, × {beside}",
        "at": "",
        "measured": None,
        "beside": None,
        "ratio": None,
        "by_fastest": None,
        "verdict": "not measured",
    }
    if not pairs:
        return row
    worst = max(pairs, key=lambda pair: pair.measured / pair.beside)
    ratio = worst.measured / worst.beside
    row |= {"at": worst.at, "measured": worst.measured, "beside": worst.beside, "ratio": ratio}
    if worst.fastest is not None and worst.fastest_beside is not None:
        row["by_fastest"] = worst.fastest / worst.fastest_beside
    if limit is None:
        return row | {"verdict": ""}
    if ratio <= limit:
        return row | {"verdict": "met"}
    return row | {"verdict": f"missed by {ratio / limit - 1:.0%}"}


def having(measured: Sequence[Row], column: str, value: str) -> list[Row]:
    """The rows with this value in a column, without that column."""
    return [
        {name: row[name] for name in row if name != column}
        for row in measured
        if row[column] == value
    ]


def medians(measured: Sequence[Row], keys: Sequence[str], ours: str, other: str) -> list[Row]:
    """A row for each combination of ``keys``: medians and fastest times in µs, and their ratio.

    Args:
        measured: rows with the keys, ``mechanism`` and ``us``.
        ours, other: the mechanisms whose medians are divided, if the other was measured.
    """
    listed = []
    for key, group in grouped(measured, keys).items():
        row: Row = dict(zip(keys, key, strict=True))
        for (mechanism,), times in grouped(group, ("mechanism",)).items():
            us = [timed["us"] for timed in times]
            row[f"{mechanism} us"], row[f"{mechanism} fastest"] = median(us), min(us)
        if f"{other} us" in row:
            row[f"{ours} / {other}"] = row[f"{ours} us"] / row[f"{other} us"]
        listed.append(row)
    return listed
