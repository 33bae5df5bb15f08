"""The space-time diagram: a row for each process, time from left to right, messages as arrows.

The panel draws its timeline by a script. This drawing is for notebooks that are read without
scripts (on GitHub, in a page of nbconvert, untrusted, on paper), and for recorded runs without
scripts; the panel's script would also add 200 kB to each output. matplotlib's SVG has neither
tooltips nor the theme's colours.

Its size is bounded: only some hundred bars and arrows are drawn individually, and a note below the
diagram gives the number of the others. Texts of programs and messages are escaped
(``svg.element``).
"""

from __future__ import annotations

import math
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.timeline import style, svg, words
from sfm_kernel.observe.timeline.style import STATES
from sfm_kernel.observe.timeline.svg import Markup, element, number

WIDTH = 960.0
ROWS = 64
"""Processes that are drawn; more have no room on any screen."""
HEAD, LEGEND, AXIS, LINE = 24.0, 20.0, 26.0, 16.0
"""Heights in px: the heading, a line of the legend, the axis, a note."""
BARS = 600
"""The longest spans, which are drawn as individual bars with tooltips."""
CROWD = 8.0
"""The px of a row in which shorter spans are drawn together: each state has the width of its
share."""
ARROWS = 240
"""Messages that are drawn as individual arrows; of more, a sample of this size is drawn."""
FOREMOST = 24
"""This number of the costliest late messages, and of those not received, is always drawn."""
FEW = 100
"""Up to this number, arrows lie on the bars that they cross; more lie under them."""
STUB = 15.0
"""The length in px of an arrow whose other end is not known."""

Span = Mapping[str, Any]
Flight = Mapping[str, Any]


@dataclass(frozen=True)
class Frame:
    """The plot's area: ``left`` to ``right`` in px for ``begin`` to ``end`` in s."""

    begin: float
    end: float
    left: float
    right: float
    rows: dict[str, float]  # the middle of each process's row
    bar: float  # the height of a bar

    def x(self, time: float) -> float:
        """The px of a time, also outside of the area."""
        share = (time - self.begin) / (self.end - self.begin)
        return self.left + share * (self.right - self.left)

    def within(self, time: float | None) -> float:
        """The px of a time, clipped to the area; None is a time in the future."""
        return self.right if time is None else min(max(self.x(time), self.left), self.right)


def diagram(
    data: Mapping[str, Any],
    lost: frozenset[str],
    waited: Mapping[str, float],
    heading: str,
    notes: Sequence[str],
) -> str:
    """The diagram as SVG.

    Args:
        data: a "timeline" of ``schema.json``.
        lost: the ids of messages that were not received.
        waited: the seconds that each process waited for late others, by uid.
        heading, notes: lines of text above and below.
    """
    notes = list(notes)
    processes = data["processes"][:ROWS]
    if len(data["processes"]) > ROWS:
        notes.append(f"The first {ROWS} of {len(data['processes'])} processes are drawn.")
    names = {process["uid"]: str(process["name"]) for process in data["processes"]}
    legend, lines = _legend(_marks(data, bool(lost)))
    top = HEAD + lines * LEGEND + 22
    pitch = next((px for most, px in ((4, 52), (8, 40), (16, 30)) if len(processes) <= most), 22)
    bottom = top + len(processes) * pitch
    widest = max((svg.length(str(process["name"]), 12) for process in processes), default=0)
    frame = Frame(
        begin=data["begin"],
        end=max(data["end"], data["begin"] + 1e-5),
        left=min(max(widest, 24), 130) + 26,
        right=WIDTH - (86 if any(waited.values()) else 30),
        rows={process["uid"]: top + (nth + 0.5) * pitch for nth, process in enumerate(processes)},
        bar=pitch * 0.45,
    )
    flights = [
        process
        for process in data["flights"]
        if {process["src"], process["dest"]} <= frame.rows.keys()
    ]

    # Two diagrams in one page must not share ids: an id's owner may be hidden.
    name = f"sfm{zlib.crc32(repr((heading, data['begin'], data['end'])).encode()):08x}"
    bars, short = _bars(data["spans"], names, frame)
    drawn, every = _thinned(flights, lost)
    arrows = [_arrow(flight, names, flight["id"] in lost, frame, name) for flight in drawn]
    if short:
        notes.append(
            f"{words.count(short, 'short span')}, drawn together: each state by its share."
        )
    if every > 1:
        notes.append(f"One of {every} messages is drawn, besides the costliest and the lost ones.")
    area = {"x": frame.left, "y": top - 14, "width": frame.right - frame.left,
            "height": bottom - top + 20}  # fmt: skip
    layers = [element("g", *bars), element("g", *arrows, clip_path=f"url(#{name}-area)")]
    parts = [
        style.definitions(name),
        element("clipPath", element("rect", **area), id=f"{name}-area"),
        element("rect", class_="back", fill="#fff", width="100%", height="100%", rx=4),
        element("text", svg.cut(heading, WIDTH - 24, 13), class_="head", x=12, y=20),
        legend,
        *_axis(frame, top, bottom),
        *_labels(processes, waited, frame, top - 2),
        *(layers if len(arrows) < FEW else reversed(layers)),
        element("g", *_costs(flights, frame)),
        *_notes(notes, bottom + AXIS),
    ]
    height = bottom + AXIS + LINE * len(notes) + 8
    return element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", id=name, class_="sfm-timeline",
        role="img", aria_label=heading, viewBox=f"0 0 {number(WIDTH)} {number(height)}",
        width=WIDTH, style="max-width:100%;height:auto",
    )  # fmt: skip


# ---- around the plot


def _marks(data: Mapping[str, Any], lost: bool) -> list[str]:
    """The states and kinds of arrows that the legend explains."""
    states = {span["state"] for span in data["spans"]}
    late = {flight["late"] for flight in data["flights"]}
    marks = [state for state in STATES if state in states]
    marks += ["message"] * bool(data["flights"])
    marks += [f"late {end}" for end in ("sender", "receiver") if end in late]
    return marks + ["not received"] * lost


def _legend(marks: Sequence[str]) -> tuple[Markup, int]:
    """The legend, and its number of lines."""
    items, x, line = [], 12.0, 0
    for mark in marks:
        text = STATES[mark]["text"] if mark in STATES else mark
        width = 28 + svg.length(text) + 14
        if x + width > WIDTH:
            x, line = 12.0, line + 1
        y = HEAD + line * LEGEND + 14
        if mark in STATES:
            high = 12 * STATES[mark]["height"]
            shape = element("rect", class_=style.css(mark), x=x, y=y - 4 - high / 2, width=20,
                            height=high)  # fmt: skip
        elif mark == "not received":
            shape = element("path", class_="message late", d=_cross(x + 10, y - 4))
        else:
            kind = mark if mark == "message" else f"message {mark}"
            shape = element("path", class_=kind, d=f"M{number(x)} {number(y - 4)}h20")
        items += [shape, element("text", text, x=x + 26, y=y)]
        x += width
    return element("g", *items), line + 1


def _axis(frame: Frame, top: float, bottom: float) -> Iterator[Markup]:
    for time, text in words.ticks(frame.end - frame.begin) if frame.rows else ():
        x = frame.x(frame.begin + time)
        yield element("line", class_="grid", x1=x, x2=x, y1=top - 6, y2=bottom + 4)
        yield element("text", text, class_="quiet", x=x, y=bottom + 17, text_anchor="middle")


def _labels(
    processes: Sequence[Mapping[str, Any]], waited: Mapping[str, float], frame: Frame, top: float
) -> Iterator[Markup]:
    """Names to the left, and to the right the time that each process waited for late others."""
    right = frame.right + 10
    if any(waited.values()):
        heading = element("title", "for late senders and late receivers, in all")
        yield element("text", heading, "waited", class_="quiet", x=right, y=top)
    for process in processes:
        y = frame.rows[process["uid"]]
        name = str(process["name"])
        rank = "no rank" if process["rank"] is None else f"rank {process['rank']}"
        shown = svg.cut(name, frame.left - 24, 12)
        title = element("title", f"{name}, {rank}")
        yield element("text", title, shown, x=frame.left - 10, y=y + 4,
                      text_anchor="end", font_size="12px", font_weight=600)  # fmt: skip
        yield element("line", class_="grid", x1=frame.left, x2=frame.right, y1=y, y2=y)
        if waited.get(process["uid"]):
            text = words.duration(waited[process["uid"]])
            yield element("text", text, class_="cost", x=right, y=y + 4)


def _notes(notes: Sequence[str], y: float) -> Iterator[Markup]:
    for nth, note in enumerate(notes, 1):
        shown = svg.cut(note, WIDTH - 24)
        yield element("text", element("title", note), shown, class_="quiet", x=12, y=y + nth * LINE)


# ---- spans


def _bars(
    spans: Iterable[Span], names: Mapping[str, str], frame: Frame
) -> tuple[list[Markup], int]:
    """The drawn spans, and the number of spans without an individual bar."""
    rows = defaultdict(list)
    for span in spans:
        left, right = frame.within(span["begin"]), frame.within(span["end"])
        if span["uid"] in frame.rows and left < frame.right and right > frame.left:
            rows[span["uid"]].append((span, left, right))
    widths = sorted((right - left for row in rows.values() for _, left, right in row), reverse=True)
    least = max(1.5, widths[BARS] * 1.000001) if len(widths) > BARS else 0.0
    drawn = []
    short = 0
    for uid, row in rows.items():
        narrow = [(span["state"], left, right) for span, left, right in row if right - left < least]
        short += len(narrow)
        if narrow:
            drawn.append(_crowd(narrow, names[uid], frame.rows[uid], frame.bar))
        for span, left, right in row:
            if right - left >= least:
                high = frame.bar * STATES[span["state"]]["height"]
                title = element("title", _span_words(span, names[uid], frame))
                area = {"x": left, "y": frame.rows[uid] - high / 2, "width": right - left}
                kind = style.css(span["state"])
                drawn.append(element("rect", title, class_=kind, height=high, **area))
    return drawn, short


def _span_words(span: Span, name: str, frame: Frame) -> str:
    seconds = (frame.end if span["end"] is None else span["end"]) - span["begin"]
    lasts = ", and still is" if span["end"] is None else ""
    begin = words.duration(max(0.0, span["begin"] - frame.begin))
    state = STATES[span["state"]]["text"]
    text = f"{name}: {state}, {words.duration(seconds)}, from {begin} on{lasts}"
    location = code_locations.words(span["where"])
    return f"{text}\n{location}" if location else text


def _crowd(
    narrow: Sequence[tuple[str, float, float]], name: str, middle: float, bar: float
) -> Markup:
    """Short spans drawn together: one path for each state."""
    paths: dict[str, str] = defaultdict(str)
    for x, shares in _shares(narrow):
        for state in filter(shares.get, STATES):
            high = number(bar * STATES[state]["height"])
            y = number(middle - bar * STATES[state]["height"] / 2)
            width = number(max(shares[state], 0.01))
            paths[state] += f"M{number(x)} {y}h{width}v{high}h-{width}z"
            x += shares[state]
    title = element("title", f"{name}: {words.count(len(narrow), 'short span')}, each by its share")
    shapes = [
        element("path", class_=style.css(state), d=path, stroke_width=0)
        for state, path in paths.items()
    ]
    return element("g", title, *shapes, class_="crowd")


def _shares(narrow: Iterable[tuple[str, float, float]]) -> Iterator[tuple[float, dict[str, float]]]:
    """Groups of narrow spans that follow each other: the begin, and each state's width, in px."""
    shares: dict[str, float] = {}
    begin = end = -math.inf
    for state, left, right in narrow:
        if left > end + 0.01 or right - begin > CROWD:
            if shares:
                yield begin, shares
            begin, shares = left, {}
        shares[state] = shares.get(state, 0.0) + right - left
        end = right
    if shares:
        yield begin, shares


# ---- messages


def first(flight: Flight) -> float:
    """The time at which a message was first seen."""
    return float(flight["received"] if flight["sent"] is None else flight["sent"])


def waiting(flight: Flight) -> str:
    """The uid of the process that waited for the late end."""
    return str(flight["dest" if flight["late"] == "sender" else "src"])


def _thinned(flights: Sequence[Flight], lost: frozenset[str]) -> tuple[list[Flight], int]:
    """The messages that are drawn; and n if, besides the foremost, they are one of n."""
    every = -(-len(flights) // ARROWS) or 1
    costliest = sorted(flights, key=lambda flight: -flight["cost"])[:FOREMOST]
    foremost = {flight["id"] for flight in costliest if flight["late"]}
    foremost.update([flight["id"] for flight in flights if flight["id"] in lost][:FOREMOST])
    ordered = sorted(flights, key=first)
    drawn = [one for nth, one in enumerate(ordered) if nth % every == 0 or one["id"] in foremost]
    return drawn, every


def _arrow(flight: Flight, names: Mapping[str, str], lost: bool, frame: Frame, name: str) -> Markup:
    is_complete = flight["sent"] is not None and flight["received"] is not None
    kind = f"message late {flight['late']}" if flight["late"] else "message"
    kind += "" if is_complete or lost else " unknown"
    path, end = _path(flight, frame)
    tip = None if lost else f"url(#{name}-{'late' if flight['late'] else 'tip'})"
    shapes = [
        element("title", _flight_words(flight, names, lost, frame)),
        element("path", class_="hit", d=path),
        element("path", class_=kind, d=path, marker_end=tip),
    ]
    if lost:
        shapes.append(element("path", class_="message late", d=_cross(*end)))
    return element("g", *shapes)


def _cross(x: float, y: float) -> str:
    """The mark of a message that was not received."""
    return f"M{number(x - 4)} {number(y - 4)}l8 8m0 -8l-8 8"


def _path(flight: Flight, frame: Frame) -> tuple[str, tuple[float, float]]:
    """The path from the sender's bar to the receiver's, and its end."""
    sent, received = flight["sent"], flight["received"]
    y0, y1 = frame.rows[flight["src"]], frame.rows[flight["dest"]]
    half = math.copysign(frame.bar / 2, y1 - y0)
    # A stub towards the neighbouring row: the other end is not known.
    dx, dy = STUB * 0.6, math.copysign(STUB * 0.8, half)
    if received is None:
        x = frame.x(sent)
        line = (x, y0 + half, x + dx, y0 + half + dy)
    elif sent is None or sent < frame.begin - (frame.end - frame.begin):
        x = frame.x(received)
        line = (x - dx, y1 - half - dy, x, y1 - half)
    elif flight["src"] == flight["dest"]:
        line = (frame.x(sent), y0 - half, frame.x(received), y0 - half)
        above = number(y0 - half - 12)
        start, y, end, _ = map(number, line)
        return f"M{start} {y}C{start} {above} {end} {above} {end} {y}", line[2:]
    else:
        line = (frame.x(sent), y0 + half, frame.x(received), y1 - half)
    return "M{} {}L{} {}".format(*map(number, line)), line[2:]


def _flight_words(flight: Flight, names: Mapping[str, str], lost: bool, frame: Frame) -> str:
    """The text of the arrow's tooltip."""
    lines = [f"{names[flight['src']]} → {names[flight['dest']]}, {words.size(flight['bytes'])}"]
    lines += [f"{name}={text}" for name, text in flight["attributes"]]
    for end in ("sent", "received"):
        if flight[end] is not None:
            location = code_locations.words(flight[f"{end}_at"])
            time = flight[end] - frame.begin
            when = f"at {words.duration(time)}" if time >= 0 else "before"
            lines.append(f"{end} {when}{', ' if location else ''}{location}")
    if lost:
        lines.append("not received")
    if flight["late"]:
        cost = words.duration(flight["cost"])
        lines.append(f"late {flight['late']}: {names[waiting(flight)]} waited {cost}")
    return "\n".join(lines)


def _costs(flights: Iterable[Flight], frame: Frame) -> Iterator[Markup]:
    """A line for each wait for a late end, as long as its cost, with the time if there is room."""
    lines, texts = "", []
    for flight in flights:
        if flight["since"] is None:
            continue
        row = frame.rows[waiting(flight)]
        left, right = frame.within(flight["since"]), frame.within(flight["since"] + flight["cost"])
        if right - left >= 1:
            y = row + frame.bar * 0.35
            lines += f"M{number(left)} {number(y)}h{number(right - left)}"
        text = words.duration(flight["cost"])
        if svg.length(text, 13) < right - left:
            x = (left + right) / 2
            texts.append(
                element("text", text, class_="cost halo", x=x, y=row + 4, text_anchor="middle")
            )
    yield element("path", class_="late", d=lines)
    yield from texts
