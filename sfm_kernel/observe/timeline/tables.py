"""A timeline's messages and spans as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfm_kernel.observe import code_locations

if TYPE_CHECKING:
    import pandas

MESSAGES = ("src", "dest", "number", "sent", "received", "bytes", "late", "cost", "attributes",
            "sent_at", "received_at")  # fmt: skip
SPANS = ("process", "state", "begin", "end", "seconds", "where")


def messages(data: Mapping[str, Any], names: Mapping[str, str | int]) -> pandas.DataFrame:
    """A row for each message, by its first known time; times in s since the run began."""
    begin = data["begin"]
    rows = [
        {
            **one,
            "src": names[one["src"]],
            "dest": names[one["dest"]],
            "sent": _after(begin, one["sent"]),
            "received": _after(begin, one["received"]),
            "attributes": dict(one["attributes"]),
            "sent_at": code_locations.words(one["sent_at"]),
            "received_at": code_locations.words(one["received_at"]),
        }
        for one in sorted(data["flights"], key=first)
    ]
    return _table(rows, MESSAGES, begin)


def spans(data: Mapping[str, Any], names: Mapping[str, str | int]) -> pandas.DataFrame:
    """A row for each span, by process and time, as far as it is within the run; ``end`` is NaN
    while it lasts."""
    begin, end = data["begin"], data["end"]
    rows = []
    for one in data["spans"]:
        since = max(one["begin"], begin) - begin
        until = min(end if one["end"] is None else one["end"], end) - begin
        rows.append(
            {
                "process": names[one["uid"]],
                "state": one["state"],
                "begin": since,
                "end": None if one["end"] is None else until,
                "seconds": max(0.0, until - since),
                "where": code_locations.words(one["where"]),
            }
        )
    return _table(rows, SPANS, begin)


def first(flight: Mapping[str, Any]) -> float:
    """When a message was first seen."""
    time = flight["received"] if flight["sent"] is None else flight["sent"]
    return float(time)


def _after(begin: float, time: float | None) -> float | None:
    return None if time is None else time - begin


def _table(rows: list[dict[str, Any]], columns: tuple[str, ...], begin: float) -> pandas.DataFrame:
    import pandas

    table = pandas.DataFrame(rows, columns=list(columns))
    times = [name for name in ("sent", "received", "begin", "end") if name in columns]
    table = table.astype(dict.fromkeys(times, float))  # None becomes NaN
    table.attrs["begin"] = begin  # s since 1970
    return table
