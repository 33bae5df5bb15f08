"""The timeline as an object: a diagram in a notebook, tables, and a trace for Perfetto."""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.drawings.animation import Animation
from sfm_kernel.observe.timeline import chrome, words
from sfm_kernel.observe.timeline.diagram import WIDTH, diagram, first, waiting

if TYPE_CHECKING:
    import pandas


SHOWN = 8
"""Waits that the summary lists."""
_NARROW = 560
"""The least width of the diagram in px."""

ENDS = ("sent", "received")
"""A message's ends."""


class Timeline:
    """A world's last run, as it was when it was read.

    A notebook shows it as a space-time diagram: a row for each process, its bar coloured and
    hatched by state, and an arrow for each message. Messages that let a process wait are red, and
    the bar of the process that waited shows how long; see ``sfm_kernel.observe.timeline.late``.
    Tooltips show attributes, and the lines of code at both ends.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        blind: Mapping[str, float] | None = None,
        known: int | None = None,
    ) -> None:
        """``data`` in the shape of the schema's ``timeline``.

        Args:
            blind: the time before which a receipt of a process may have gone unseen, by uid;
                messages to it that were sent before that are not taken for lost.
            known: the number of events of the run that were read, if ``data`` is a part of it.
        """
        self.data = data
        """In the shape of the schema; times are seconds since 1970."""
        self._blind = dict(blind or {})
        self._known = _events(data) if known is None else known
        processes = data["processes"]
        self._names: dict[str, str | int] = {row["uid"]: row["name"] for row in processes}

    # ---- what is in it ----

    @property
    def lost(self) -> list[dict[str, Any]]:
        """Messages that were sent and not received, in the shape of the schema's ``flight``.

        They may still wait in an inbox. A message whose receipt may have gone unseen is left out.
        """
        return [
            dict(flight)
            for flight in self.data["flights"]
            if flight["received"] is None
            and flight["sent"] > self._blind.get(flight["dest"], -math.inf)
        ]

    def to_dataframe(self) -> pandas.DataFrame:
        """The messages as a table: a row for each, by the time it was sent.

        Columns: ``src``, ``dest`` (names), ``number`` (of the message within this pair, from 1),
        ``sent``, ``received`` (s since the run began; NaN if that is unknown, or did not happen),
        ``bytes``, ``late`` ("sender", "receiver" or None), ``cost`` (s that the other waited),
        ``attributes`` (a dict of texts), ``sent_at``, ``received_at`` (lines of code, as texts).
        ``attrs["begin"]`` is when the run began, s since 1970.
        """
        begin = self.data["begin"]
        rows = [
            {
                **flight,
                "src": self._names[flight["src"]],
                "dest": self._names[flight["dest"]],
                **{end: None if flight[end] is None else flight[end] - begin for end in ENDS},
                "attributes": dict(flight["attributes"]),
                **{f"{end}_at": code_locations.words(flight[f"{end}_at"]) for end in ENDS},
            }
            for flight in sorted(self.data["flights"], key=first)
        ]
        columns = "src dest number sent received bytes late cost attributes sent_at received_at"
        return _table(rows, columns.split(), ENDS, begin)

    def spans_to_dataframe(self) -> pandas.DataFrame:
        """The states of the processes as a table: a row for each span.

        Columns: ``process`` (its name), ``state``, ``begin``, ``end`` (s since the run began; NaN
        while it lasts), ``seconds``, ``where`` (a line of code, as text).
        """
        begin, end = self.data["begin"], self.data["end"]
        rows = []
        for span in self.data["spans"]:
            since = max(span["begin"], begin) - begin
            until = min(end if span["end"] is None else span["end"], end) - begin
            rows.append(
                {
                    "process": self._names[span["uid"]],
                    "state": span["state"],
                    "begin": since,
                    "end": None if span["end"] is None else until,
                    "seconds": max(0.0, until - since),
                    "where": code_locations.words(span["where"]),
                }
            )
        columns = ["process", "state", "begin", "end", "seconds", "where"]
        return _table(rows, columns, ["begin", "end"], begin)

    def to_chrome(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The run in the trace event format, for ui.perfetto.dev and chrome://tracing.

        Written to ``path``, if one is given.

        A thread for each process, a slice for each span, a flow for each message; us.
        Raises:
            OSError: the file cannot be written.
        """
        trace = chrome.trace(self.data, self._lost_ids())
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(trace, file)
        return trace

    def between(self, begin: float, end: float) -> Timeline:
        """The part from ``begin`` to ``end``, in seconds since this timeline's begin.

        Raises:
            ValueError: ``end`` does not come after ``begin``.
        """
        if not begin < end:
            raise ValueError(f"a part ends after its begin; it cannot last from {begin} to {end} s")
        low, high = self.data["begin"] + begin, self.data["begin"] + end
        spans = [
            span
            for span in self.data["spans"]
            if span["begin"] < high and (span["end"] is None or span["end"] > low)
        ]
        flights = [
            flight
            for flight in self.data["flights"]
            if first(flight) <= high and (flight["received"] is None or flight["received"] >= low)
        ]
        changes = {"begin": low, "end": high, "spans": spans, "flights": flights}
        return Timeline({**self.data, **changes}, self._blind, self._known)

    def animated(self) -> Animation:
        """The messages between engines as moving dots, one after the other, in a tree."""
        return Animation(self.data)

    # ---- display ----

    def __repr__(self) -> str:
        lines = [self.heading(), *self._notes()]
        waits: dict[tuple[str, str], float] = defaultdict(float)
        for uid, end, cost in self._waits():
            waits[uid, end] += cost
        longest = sorted(waits.items(), key=lambda wait: -wait[1])
        for (uid, end), cost in longest[:SHOWN]:
            lines.append(f"{self._names[uid]} waited {words.duration(cost)} for late {end}s.")
        if len(longest) > SHOWN:
            rest = sum(cost for _, cost in longest[SHOWN:])
            lines.append(f"The others waited {words.duration(rest)} in all.")
        return "\n".join(lines)

    def _repr_svg_(self) -> str:
        waited: dict[str, float] = defaultdict(float)
        for uid, _, cost in self._waits():
            waited[uid] += cost
        return diagram(self.data, self._lost_ids(), waited, self.heading(), self._notes())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The drawing twice: as HTML with the theme's colours and tooltips, which JupyterLab does
        not show in an image/svg+xml output; and as SVG for viewers without HTML. The HTML is as
        wide as its place, and scrolls where its letters would be too small."""
        drawing = self._repr_svg_()
        scrolls = '<div tabindex="0" style="overflow-x:auto">'
        size = f"min-width:{_NARROW}px;max-width:{WIDTH:.0f}px"
        return {
            "text/html": f'{scrolls}<div style="{size}">{drawing}</div></div>',
            "image/svg+xml": drawing,
            "text/plain": repr(self),
        }

    def heading(self) -> str:
        """The world, its numbers of processes and messages and its duration, in one line."""
        data = self.data
        sizes = sum(flight["bytes"] for flight in data["flights"])
        messages = words.count(len(data["flights"]), "message")
        return (
            f"World {data['world']}: {words.count(len(data['processes']), 'process')}, "
            f"{messages}{f' of {words.size(sizes)}' if sizes else ''}, "
            f"{words.duration(max(0.0, data['end'] - data['begin']))}"
        )

    def _notes(self) -> list[str]:
        notes = []
        if not self.data["spans"]:
            notes.append("Nothing has happened yet.")
        if self.lost:
            notes.append(f"{words.count(len(self.lost), 'message')} sent and not received.")
        if missing := self.data["missing"]:
            notes.append(
                f"{words.count(missing, 'event')} missing: overwritten before they were read, "
                "or dropped."
            )
            notes.append(f"All sums are of the other {words.share(self._known, missing)}.")
        return notes

    def _waits(self) -> list[tuple[str, str, float]]:
        """For each late message the uid of the process that waited, the late end and the cost."""
        late = [flight for flight in self.data["flights"] if flight["late"]]
        return [(waiting(flight), flight["late"], flight["cost"]) for flight in late]

    def _lost_ids(self) -> frozenset[str]:
        return frozenset(flight["id"] for flight in self.lost)


def _events(data: Mapping[str, Any]) -> int:
    """The number of events in the data: each span, and each known end of a message."""
    ends = [flight[end] for flight in data["flights"] for end in ENDS]
    return len(data["spans"]) + len(ends) - ends.count(None)


def _table(
    rows: list[dict[str, Any]], columns: Sequence[str], times: Sequence[str], begin: float
) -> pandas.DataFrame:
    import pandas

    table = pandas.DataFrame(rows, columns=list(columns))
    table = table.astype(dict.fromkeys(times, float))  # None becomes NaN
    table.attrs["begin"] = begin  # s since 1970
    return table
