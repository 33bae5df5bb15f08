"""Rows as a text table, a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
"""One measurement: column name -> number, text or None."""


def table(rows: Iterable[Row]) -> str:
    """The rows as aligned text, a column for every key in the order of its first appearance."""
    listed = list(rows)
    columns = list(dict.fromkeys(key for row in listed for key in row))
    if not columns:
        return "(no rows)"
    cells = [[cell(row.get(column)) for column in columns] for row in listed]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    is_number = [
        all(isinstance(row.get(column), int | float | None) for row in listed) for column in columns
    ]
    lines = [columns, ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in lines
    )


def cell(value: object) -> str:
    """A value as text, short."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def frame(rows: Iterable[Row]) -> pandas.DataFrame:
    """The rows as a pandas DataFrame, a column for every key."""
    import pandas

    return pandas.DataFrame(list(rows))


def grouped(rows: Iterable[Row], keys: Sequence[str]) -> dict[tuple[Any, ...], list[Row]]:
    """The rows, grouped by their values of ``keys``; groups in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return groups
