"""The timeline as an object: a picture in a notebook, tables, and a trace for Perfetto."""

from __future__ import annotations

import json
import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.timeline import chrome, words
from sfm_kernel.observe.timeline.diagram import WIDTH, diagram, first

if TYPE_CHECKING:
    import pandas


SHOWN = 8
"""Waits that the summary lists."""
ENDS = ("sent", "received")
"""A message's ends."""


class Timeline:
    """A world's last run, as it was when it was read.

    In a notebook it is a space-time diagram: a row for each process, its bar coloured and hatched
    by state, and an arrow for each message. Messages that let somebody wait are red, and the bar of
    who waited says how long; see ``sfm_kernel.observe.timeline.late``. Tooltips say attributes, and
    the lines of code at both ends.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        blind: Mapping[str, float] | None = None,
        known: int | None = None,
    ) -> None:
        """``data`` in the shape of the schema's ``timeline``.

        Args:
            blind: before which time a receipt of a process may have gone unseen, by uid; messages
                to it that were sent before are not taken for lost.
            known: events of the run that were read, where ``data`` is a part of it.
        """
        self.data = data
        """In the shape of the schema; times are seconds since 1970."""
        self._blind = dict(blind or {})
        self._known = _events(data) if known is None else known
        self._names: dict[str, str | int] = {one["uid"]: one["name"] for one in data["processes"]}

    # ---- what is in it ----

    @property
    def lost(self) -> list[dict[str, Any]]:
        """Messages that were sent and not received, in the shape of the schema's ``flight``.

        They may still wait in an inbox. Without those of which it is not known.
        """
        return [
            dict(one)
            for one in self.data["flights"]
            if one["received"] is None and one["sent"] > self._blind.get(one["dest"], -math.inf)
        ]

    def to_dataframe(self) -> pandas.DataFrame:
        """The messages: a row for each, by the time of its sending.

        Columns: ``src``, ``dest`` (names), ``number`` (which message of this pair, from 1 on),
        ``sent``, ``received`` (s since the run began; NaN where it is not known, or was not),
        ``bytes``, ``late`` ("sender", "receiver" or None), ``cost`` (s that the other waited),
        ``attributes`` (a dict of texts), ``sent_at``, ``received_at`` (places, as texts).
        ``attrs["begin"]`` is when the run began, s since 1970.
        """
        begin = self.data["begin"]
        rows = [
            {
                **one,
                "src": self._names[one["src"]],
                "dest": self._names[one["dest"]],
                **{end: None if one[end] is None else one[end] - begin for end in ENDS},
                "attributes": dict(one["attributes"]),
                **{f"{end}_at": code_locations.words(one[f"{end}_at"]) for end in ENDS},
            }
            for one in sorted(self.data["flights"], key=first)
        ]
        columns = "src dest number sent received bytes late cost attributes sent_at received_at"
        return _table(rows, columns.split(), ENDS, begin)

    def spans_to_dataframe(self) -> pandas.DataFrame:
        """The states of the processes: a row for each time in one state.

        Columns: ``process`` (its name), ``state``, ``begin``, ``end`` (s since the run began; NaN
        while it lasts), ``seconds``, ``where`` (a place, as text).
        """
        begin, end = self.data["begin"], self.data["end"]
        rows = []
        for one in self.data["spans"]:
            since = max(one["begin"], begin) - begin
            until = min(end if one["end"] is None else one["end"], end) - begin
            rows.append(
                {
                    "process": self._names[one["uid"]],
                    "state": one["state"],
                    "begin": since,
                    "end": None if one["end"] is None else until,
                    "seconds": max(0.0, until - since),
                    "where": code_locations.words(one["where"]),
                }
            )
        columns = ["process", "state", "begin", "end", "seconds", "where"]
        return _table(rows, columns, ["begin", "end"], begin)

    def to_chrome(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The trace event format, for ui.perfetto.dev and chrome://tracing; written to ``path``.

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
        """The part from ``begin`` to ``end``, in seconds since this one's begin: a closer look.

        Raises:
            ValueError: ``end`` does not come after ``begin``.
        """
        if not begin < end:
            raise ValueError(f"a part ends after its begin; it cannot last from {begin} to {end} s")
        low, high = self.data["begin"] + begin, self.data["begin"] + end
        spans = [
            one
            for one in self.data["spans"]
            if one["begin"] < high and (one["end"] is None or one["end"] > low)
        ]
        flights = [
            one
            for one in self.data["flights"]
            if first(one) <= high and (one["received"] is None or one["received"] >= low)
        ]
        changes = {"begin": low, "end": high, "spans": spans, "flights": flights}
        return Timeline({**self.data, **changes}, self._blind, self._known)

    # ---- how it is shown ----

    def __repr__(self) -> str:
        lines = [self.heading(), *self._notes()]
        waits: dict[tuple[str, str], float] = defaultdict(float)
        for uid, who, cost in self._waits():
            waits[uid, who] += cost
        longest = sorted(waits.items(), key=lambda one: -one[1])
        for (uid, who), cost in longest[:SHOWN]:
            lines.append(f"{self._names[uid]} waited {words.duration(cost)} for late {who}s.")
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
        """The drawing twice: as HTML it has the theme's colours and tooltips, which JupyterLab
        does not show in an SVG of its own; that is for all who show no HTML. Where there is too
        little room, the HTML keeps its size and scrolls: its letters are small enough."""
        picture = self._repr_svg_()
        scrolls = '<div tabindex="0" style="overflow-x:auto">'
        return {
            "text/html": f'{scrolls}<div style="width:{WIDTH:.0f}px">{picture}</div></div>',
            "image/svg+xml": picture,
            "text/plain": repr(self),
        }

    def heading(self) -> str:
        """The world, how many took part and how long it took, in one line."""
        data = self.data
        sizes = sum(one["bytes"] for one in data["flights"])
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
        """For each late message who waited (a uid), for which end, and how long."""
        late = [one for one in self.data["flights"] if one["late"]]
        waiting = {"sender": "dest", "receiver": "src"}
        return [(one[waiting[one["late"]]], one["late"], one["cost"]) for one in late]

    def _lost_ids(self) -> frozenset[str]:
        return frozenset(one["id"] for one in self.lost)


def _events(data: Mapping[str, Any]) -> int:
    """How many events are told: each span is one, and each end of a message that is known."""
    ends = [one[end] for one in data["flights"] for end in ENDS]
    return len(data["spans"]) + len(ends) - ends.count(None)


def _table(
    rows: list[dict[str, Any]], columns: Sequence[str], times: Sequence[str], begin: float
) -> pandas.DataFrame:
    import pandas

    table = pandas.DataFrame(rows, columns=list(columns))
    table = table.astype(dict.fromkeys(times, float))  # None becomes NaN
    table.attrs["begin"] = begin  # s since 1970
    return table
