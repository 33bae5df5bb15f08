"""The space-time diagram: a row for each process, time from left to right, messages as arrows.

Drawn small whatever happened: at most some hundred bars and arrows stand for themselves; others are
drawn together, and a line below the diagram says how many. Texts of programs and messages are
escaped (``svg.element``).
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sfm_kernel.observe.timeline import style, svg, words
from sfm_kernel.observe.timeline.arrows import arrows, cross
from sfm_kernel.observe.timeline.bars import bars
from sfm_kernel.observe.timeline.frame import Frame, ticks
from sfm_kernel.observe.timeline.svg import Markup, element

WIDTH = 960.0
FEW = 100
"""Arrows."""
ROWS = 64
"""Processes that are drawn; more have no room on any screen."""
HEAD, LEGEND, AXIS, LINE = 24.0, 20.0, 26.0, 16.0
"""Heights in px: of the heading, of a line of the legend, of the axis, of a note."""


def diagram(
    data: Mapping[str, Any],
    lost: frozenset[str],
    waited: Mapping[str, float],
    heading: str,
    notes: Sequence[str],
) -> str:
    """The SVG.

    Args:
        data: a timeline in the shape of the schema.
        lost: the ids of messages that were not received.
        waited: how long each process waited for late others, by uid, s.
        heading, notes: lines above and below.
    """
    notes = list(notes)
    processes = data["processes"][:ROWS]
    if len(data["processes"]) > ROWS:
        notes.append(f"The first {ROWS} of {len(data['processes'])} processes are drawn.")
    names = {one["uid"]: str(one["name"]) for one in data["processes"]}
    marks = _marks(data, bool(lost))
    legend, lines = _legend(marks)
    top = HEAD + lines * LEGEND + 22
    frame = _frame(data, processes, any(waited.values()), top)
    bottom = top + len(processes) * _pitch(len(processes))
    flights = [one for one in data["flights"] if {one["src"], one["dest"]} <= frame.rows.keys()]

    # Two diagrams in one page must not share ids: an id's owner may be hidden.
    name = f"sfm{zlib.crc32(repr((heading, data['begin'], data['end'])).encode()):08x}"
    boxes, short = bars(data["spans"], names, frame)
    messages, thinned = arrows(flights, names, lost, frame, name)
    if short:
        notes.append(
            f"{words.count(short, 'short span')}, drawn together: each state by its share."
        )
    notes += [thinned] if thinned else []
    area = {"x": frame.left, "y": top - 14, "width": frame.right - frame.left,
            "height": bottom - top + 20}  # fmt: skip
    arrows_ = element("g", *messages, clip_path=f"url(#{name}-area)")
    layers = [element("g", *boxes), arrows_]
    parts = [
        style.definitions(name),
        element("clipPath", element("rect", **area), id=f"{name}-area"),
        element("rect", class_="back", fill="#fff", width="100%", height="100%", rx=4),
        element("text", svg.cut(heading, WIDTH - 24, 13), class_="head", x=12, y=20),
        legend,
        *_axis(frame, top, bottom),
        *_labels(processes, waited, frame),
        # Few arrows lie on the bars that they cross, many under them.
        *(layers if len(messages) < FEW else reversed(layers)),
        element("g", *_costs(flights, data["spans"], frame)),
        *_notes(notes, bottom + AXIS),
    ]
    height = bottom + AXIS + LINE * len(notes) + 8
    return element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", id=name, class_="sfm-timeline",
        role="img", aria_label=heading, viewBox=f"0 0 {svg.number(WIDTH)} {svg.number(height)}",
        width=WIDTH, style="max-width:100%;height:auto",
    )  # fmt: skip


def _pitch(rows: int) -> float:
    return 52.0 if rows <= 4 else 40.0 if rows <= 8 else 30.0 if rows <= 16 else 22.0


def _frame(
    data: Mapping[str, Any], processes: Sequence[Mapping[str, Any]], waits: bool, top: float
) -> Frame:
    pitch = _pitch(len(processes))
    widest = max((svg.length(str(one["name"]), 12) for one in processes), default=0)
    return Frame(
        begin=data["begin"],
        end=max(data["end"], data["begin"] + 1e-5),
        left=min(max(widest, 24), 130) + 26,
        right=WIDTH - (86 if waits else 30),
        rows={one["uid"]: top + (nth + 0.5) * pitch for nth, one in enumerate(processes)},
        bar=pitch * 0.45,
    )


def _marks(data: Mapping[str, Any], lost: bool) -> list[str]:
    """What the legend has to explain: states, and kinds of arrows."""
    states = {span["state"] for span in data["spans"]}
    marks = [state for state in style.STATES if state in states]
    if data["flights"]:
        marks.append("message")
    late = {flight["late"] for flight in data["flights"]}
    marks += [f"late {who}" for who in ("sender", "receiver") if who in late]
    return marks + ["not received"] * lost


def _legend(marks: Sequence[str]) -> tuple[Markup, int]:
    items, x, line = [], 12.0, 0
    for mark in marks:
        text = style.STATES.get(mark, mark)
        width = 28 + svg.length(text) + 14
        if x + width > WIDTH:
            x, line = 12.0, line + 1
        y = HEAD + line * LEGEND + 14
        if mark in style.STATES:
            high = 12 * style.height(mark)
            shape = element("rect", class_=style.css(mark), x=x, y=y - 4 - high / 2, width=20,
                            height=high)  # fmt: skip
        elif mark == "not received":
            shape = element("path", class_="message late", d=cross(x + 10, y - 4))
        else:
            kind = mark if mark == "message" else f"message {mark}"
            shape = element("path", class_=kind, d=f"M{svg.number(x)} {svg.number(y - 4)}h20")
        items += [shape, element("text", text, x=x + 26, y=y)]
        x += width
    return element("g", *items), line + 1


def _axis(frame: Frame, top: float, bottom: float) -> Iterator[Markup]:
    for time, text in ticks(frame.end - frame.begin) if frame.rows else ():
        x = frame.x(frame.begin + time)
        yield element("line", class_="grid", x1=x, x2=x, y1=top - 6, y2=bottom + 4)
        yield element("text", text, class_="quiet", x=x, y=bottom + 17, text_anchor="middle")


def _labels(
    processes: Sequence[Mapping[str, Any]], waited: Mapping[str, float], frame: Frame
) -> Iterator[Markup]:
    """Names to the left, and to the right how long each waited for late others."""
    heading = element("title", "for late senders and late receivers, in all")
    right = frame.right + 10
    if any(waited.values()):
        y = min(frame.rows.values()) - _pitch(len(processes)) / 2 - 2
        yield element("text", heading, "waited", class_="quiet", x=right, y=y)
    for one in processes:
        y = frame.rows[one["uid"]]
        name = str(one["name"])
        rank = "no rank" if one["rank"] is None else f"rank {one['rank']}"
        shown = svg.cut(name, frame.left - 24, 12)
        title = element("title", f"{name}, {rank}")
        yield element("text", title, shown, x=frame.left - 10, y=y + 4,
                      text_anchor="end", font_size="12px", font_weight=600)  # fmt: skip
        yield element("line", class_="grid", x1=frame.left, x2=frame.right, y1=y, y2=y)
        if waited.get(one["uid"]):
            yield element(
                "text", words.duration(waited[one["uid"]]), class_="cost", x=right, y=y + 4
            )


def _costs(
    flights: Sequence[Mapping[str, Any]], spans: Sequence[Mapping[str, Any]], frame: Frame
) -> Iterator[Markup]:
    """In the span in which somebody waited for a late one: a line as long as it cost, and the time
    where there is room for it."""
    blocked: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for each in spans:
        if each["state"] in ("blocked in recv", "blocked in send"):
            blocked[each["uid"]].append(each)
    lines, texts = [], []
    for one in flights:
        uid = one["dest" if one["late"] == "sender" else "src"]
        span = _waited_in(one, blocked[uid]) if one["late"] else None
        if span is None:
            continue
        left, right = frame.within(span["begin"]), frame.within(span["begin"] + one["cost"])
        if right - left < 1:
            continue
        y = frame.rows[uid] + frame.bar * style.LOWER / 2
        lines.append(f"M{svg.number(left)} {svg.number(y)}h{svg.number(right - left)}")
        text = words.duration(one["cost"])
        if svg.length(text, 13) < right - left:
            x, y = (left + right) / 2, frame.rows[uid] + 4
            texts.append(element("text", text, class_="cost halo", x=x, y=y, text_anchor="middle"))
    yield element("path", class_="late", d="".join(lines))
    yield from texts


def _waited_in(
    one: Mapping[str, Any], blocked: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """The blocked span that a late message cost: the last one that began before its sending, or for
    a sender who waited for the receipt the first one after it."""
    nth = bisect_right(blocked, one["sent"], key=lambda span: span["begin"])
    before = blocked[nth - 1] if nth else None
    if before and (before["end"] is None or before["end"] >= one["sent"]):
        return before
    return blocked[nth] if nth < len(blocked) and one["late"] == "receiver" else None


def _notes(notes: Sequence[str], y: float) -> Iterator[Markup]:
    for nth, note in enumerate(notes, 1):
        shown = svg.cut(note, WIDTH - 24)
        yield element("text", element("title", note), shown, class_="quiet", x=12, y=y + nth * LINE)
