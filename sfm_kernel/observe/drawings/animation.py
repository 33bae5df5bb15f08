"""The messages of a run as moving dots between processes, which stand in the tree of the messages.

Without scripts: SVG moves the dots itself (SMIL). The order of sends and receives is that of the
run; the time between two of them is always the same, since real ones differ by factors of hundreds.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sfm_kernel.observe.drawings.style import LINE, TEXT
from sfm_kernel.observe.timeline.svg import Markup, element, length, number

MOST = 60
"""Messages that are drawn: more would be a swarm."""

_STEP, _PAUSE, _LONGEST = 0.45, 1.5, 18.0
"""Seconds between two events; at the end, before it begins anew; of one turn at most."""

_TRAVEL = 1.6
"""Steps that a dot takes at least."""

_ACROSS, _DOWN, _RADIUS = 84.0, 74.0, 19.0
"""Pixels between two processes, between two levels, and of a process."""

_COLOUR = "var(--jp-brand-color1,#0072b2)"

_STILL = "@media (prefers-reduced-motion:reduce){.sfm-moving{display:none}}"

Flight = Mapping[str, Any]


class Animation:
    """The messages of a "timeline" of ``schema.json`` between ranked processes, in their order."""

    def __init__(self, timeline: Mapping[str, Any]) -> None:
        ranked = [one for one in timeline["processes"] if one["rank"] is not None]
        names = {process["uid"]: process["name"] for process in ranked}
        flights = [
            flight
            for flight in timeline["flights"]
            if {flight["src"], flight["dest"]} <= names.keys() and flight["sent"] is not None
        ]
        flights.sort(key=lambda flight: flight["sent"])
        self._hidden = max(0, len(flights) - MOST)
        self._flights = flights[:MOST]
        used = {flight[end] for flight in self._flights for end in ("src", "dest")}
        self._names = {uid: name for uid, name in names.items() if uid in used}

    def __repr__(self) -> str:
        pairs = (f"{self._name(one['src'])} → {self._name(one['dest'])}" for one in self._flights)
        return ", ".join([*pairs, *self._notes()]) or "no messages between engines"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if not self._flights:
            return {"text/plain": repr(self)}
        drawing = self._drawn()
        return {"text/html": drawing, "image/svg+xml": drawing, "text/plain": repr(self)}

    def _notes(self) -> list[str]:
        return [f"and {self._hidden} more"] if self._hidden else []

    def _name(self, uid: str) -> str:
        return str(self._names[uid])

    def _drawn(self) -> Markup:
        identity = f"sfm{zlib.crc32(repr(self._flights).encode()):08x}"
        levels = _levels(self._flights, self._names)
        places = {
            uid: (_RADIUS + 8 + nth * _ACROSS, _RADIUS + 8 + levels[uid] * _DOWN)
            for nth, uid in enumerate(self._names)
        }
        width = max(x for x, _ in places.values()) + _RADIUS + 8
        height = max(y for _, y in places.values()) + _RADIUS + 8 + 18 * bool(self._hidden)
        times, turn = _times(self._flights)
        clock = element(
            "rect",
            element(
                "animate", id=identity, attributeName="width", to="0",
                dur=f"{turn:.2f}s", begin=f"0s;{identity}.end",
            ),
            width=0, height=0,
        )  # fmt: skip
        lines = {frozenset((one["src"], one["dest"])): one for one in self._flights}
        parts = [
            element("title", repr(self)),
            element("style", _STILL),
            clock,
            *(_line(places[one["src"]], places[one["dest"]]) for one in lines.values()),
            *(_process(self._name(uid), place) for uid, place in places.items()),
            *(
                _dot(places[one["src"]], places[one["dest"]], times[nth], identity, one)
                for nth, one in enumerate(self._flights)
            ),
        ]
        for note in self._notes():
            parts.append(element("text", note, x=6, y=height - 5, font_size=12, fill=TEXT))
        return element(
            "svg", *parts, xmlns="http://www.w3.org/2000/svg", role="img",
            aria_label=f"Messages in their order: {self!r}", width=width,
            viewBox=f"0 0 {number(width)} {number(height)}",
            style="max-width:100%;height:auto;font-family:system-ui,sans-serif",
        )  # fmt: skip


def _levels(flights: Sequence[Flight], names: Mapping[str, object]) -> dict[str, int]:
    """The level of each process in the tree: below the one that it has sent to first.

    Who sends first to one that waits for it is at the top: there the sums come together.
    """
    parents: dict[str, str] = {}
    for flight in flights:
        above, seen = flight["dest"], {flight["src"]}
        while above in parents and above not in seen:
            seen.add(above)
            above = parents[above]
        if above not in seen:  # otherwise this answers an earlier message
            parents.setdefault(flight["src"], flight["dest"])
    levels = {}
    for uid in names:
        level, above = 0, uid
        while above in parents:
            level, above = level + 1, parents[above]
        levels[uid] = level
    return levels


def _times(flights: Sequence[Flight]) -> tuple[list[tuple[float, float]], float]:
    """When each dot starts and arrives, in seconds, and how long all of that takes."""
    events = [(flight[end], nth, end) for nth, flight in enumerate(flights) for end in _ENDS]
    known = sorted(event for event in events if event[0] is not None)
    step = min(_STEP, (_LONGEST - _PAUSE) / (len(known) + 2))
    at = {(nth, end): (place + 1) * step for place, (_, nth, end) in enumerate(known)}
    last = (len(known) + 1) * step
    times = []
    for nth in range(len(flights)):
        sent = at[nth, "sent"]
        # A receive may be noted before its send; the dot has to be seen all the same.
        times.append((sent, max(at.get((nth, "received"), last), sent + _TRAVEL * step)))
    return times, last + _PAUSE


_ENDS = ("sent", "received")


def _line(begin: tuple[float, float], end: tuple[float, float]) -> Markup:
    return element(
        "line", x1=begin[0], y1=begin[1], x2=end[0], y2=end[1], style=f"stroke:{LINE}",
        stroke_width=1.5,
    )  # fmt: skip


def _process(name: str, place: tuple[float, float]) -> Markup:
    circle = element(
        "circle", cx=place[0], cy=place[1], r=_RADIUS, stroke_width=1.5,
        style=f"fill:var(--jp-layout-color1,#f4f4f4);stroke:{LINE}",
    )  # fmt: skip
    size = min(13.0, 13 * 2 * (_RADIUS - 3) / max(length(name, 13), 1))
    text = element(
        "text", name, x=place[0], y=place[1] + 4.5, text_anchor="middle", font_size=size,
        font_weight=600, style="fill:var(--jp-ui-font-color1,#222)",
    )  # fmt: skip
    return element("g", circle, text)


def _dot(
    begin: tuple[float, float],
    end: tuple[float, float],
    times: tuple[float, float],
    clock: str,
    flight: Flight,
) -> Markup:
    first = f"{clock}.begin+{times[0]:.2f}s"
    lasts = f"{times[1] - times[0]:.2f}s"
    path = f"M{number(begin[0])} {number(begin[1])}L{number(end[0])} {number(end[1])}"
    what = ", ".join(f"{name}={value}" for name, value in flight["attributes"])
    return element(
        "circle", element("title", what),
        element("set", attributeName="opacity", to="1", begin=first, dur=lasts),
        element("animateMotion", path=path, begin=first, dur=lasts),
        r=8, opacity=0, class_="sfm-moving", style=f"fill:{_COLOUR}",
    )  # fmt: skip
