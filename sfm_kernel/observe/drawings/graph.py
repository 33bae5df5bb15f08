"""The wait-for graph of a diagnosis: a circle for those that wait for each other, and to the left
of it, in columns, those that wait for them.

The panel has a drawing that moves; this one is for places without scripts.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from sfm_kernel.observe.drawings.style import LINE, STUCK, TEXT
from sfm_kernel.observe.timeline.svg import Markup, cut, element, length, number

_MOST = 16
"""Processes that are drawn."""

_DENSE = 3
"""Edges for each process above which nothing is drawn: who waits for anybody has edges to all."""

_HIGH, _GAP, _COLUMN = 30.0, 20.0, 70.0
"""Pixels: the height of a process, between two of them, and between two columns."""

_VERDICTS = {"stuck": "stuck", "waits": "waits", "acts": "runs", "idle": "idle", "ended": "ended"}

Point = tuple[float, float]


def graph(diagnosis: Mapping[str, Any]) -> Markup | None:
    """The drawing as SVG; None if it would show nothing."""
    edges = [edge for edge in diagnosis["edges"] if edge["kind"] != "cell"]
    order = {name: None for edge in edges for name in (edge["from"], edge["to"])}
    names = [name for name in diagnosis["cycle"] if name in order]
    names = [*names, *(name for name in order if name not in names)][:_MOST]
    if len(names) < 2 or len(edges) > _DENSE * len(order):
        return None
    hidden = len(order) - len(names)
    edges = [edge for edge in edges if edge["from"] in names and edge["to"] in names]
    ring = [name for name in diagnosis["cycle"] if name in names]
    wide = min(max(length(str(name), 15) for name in names) + 56, 190)
    places, size = _places(names, ring, edges, wide)
    about = {process["name"]: process for process in diagnosis["processes"]}
    identity = f"sfm{zlib.crc32(repr((diagnosis['title'], diagnosis['time'])).encode()):08x}"
    parts = [
        element("title", diagnosis["title"]),
        element("defs", _tip(f"{identity}-tip", LINE), _tip(f"{identity}-stuck", STUCK)),
        *(_edge(edge, edges, places, wide, identity) for edge in edges),
        *(_node(name, places[name], wide, about.get(name)) for name in names),
    ]
    if hidden:
        note = f"and {hidden} more"
        parts.append(element("text", note, x=4, y=size[1] - 4, fill=TEXT, font_size=11))
    return element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", role="img",
        aria_label=diagnosis["title"], viewBox=f"0 0 {number(size[0])} {number(size[1])}",
        width=size[0], style="max-width:100%;height:auto;font-family:system-ui,sans-serif",
    )  # fmt: skip


def _places(
    names: Sequence[object], ring: Sequence[object], edges: Sequence[Mapping[str, Any]], wide: float
) -> tuple[dict[object, Point], Point]:
    """The middle of each process, and the size of the drawing."""
    columns: dict[int, list[object]] = {}
    for name, distance in _distances(names, ring, edges).items():
        columns.setdefault(distance, []).append(name)
    ring_size = max(len(ring) * (wide + 30) / math.pi, 2.2 * _HIGH + wide) if len(ring) > 1 else 0
    tallest = max(len(column) for column in columns.values()) if columns else 0
    ring_height = {0: 0.0, 2: _HIGH, 3: 0.6 * ring_size + _HIGH}.get(len(ring), ring_size + _HIGH)
    height = max(tallest * (_HIGH + _GAP), ring_height) + 16
    places: dict[object, Point] = {}
    furthest = max(columns, default=0)
    for distance, column in columns.items():
        x = 6 + wide / 2 + (furthest - distance) * (wide + _COLUMN)
        for nth, name in enumerate(column):
            places[name] = x, height * (nth + 0.5) / len(column)
    right = 12 + (furthest + bool(columns)) * (wide + _COLUMN) - (0 if ring_size else _COLUMN)
    if ring_size:
        across, high = ring_size / 2, (height - _HIGH - 16) / 2
        for nth, name in enumerate(ring):
            angle = 2 * math.pi * nth / len(ring) - (math.pi / 2 if len(ring) > 2 else math.pi)
            x = right + wide / 2 + across * (1 + math.cos(angle))
            places[name] = x, height / 2 + high * math.sin(angle)
        right += ring_size + wide + 6
    return places, (right, height)


def _distances(
    names: Sequence[object], ring: Sequence[object], edges: Sequence[Mapping[str, Any]]
) -> dict[object, int]:
    """The column of each process that is in no ring: the longest way to one that waits for nobody,
    or to the ring."""
    found: dict[object, int] = {name: 0 for name in names if name not in ring or len(ring) < 2}
    for _ in names:
        for edge in edges:
            if edge["from"] in found:
                behind = found.get(edge["to"], -1)
                if found[edge["from"]] <= behind and behind + 1 < len(names):
                    found[edge["from"]] = behind + 1
    return found


def _edge(
    edge: Mapping[str, Any],
    edges: Sequence[Mapping[str, Any]],
    places: Mapping[object, Point],
    wide: float,
    identity: str,
) -> Markup:
    (x1, y1), (x2, y2) = places[edge["from"]], places[edge["to"]]
    colour, tip = (STUCK, "stuck") if edge["cycle"] else (LINE, "tip")
    if edge["from"] == edge["to"]:
        path = f"M{number(x1 - 14)} {number(y1 - _HIGH / 2)}c-6 -26 34 -26 28 0"
    else:
        # Two that wait for each other have two arrows: each is bent to its right.
        is_mutual = any((back["to"], back["from"]) == (edge["from"], edge["to"]) for back in edges)
        bend = 0.12 * math.hypot(x2 - x1, y2 - y1) * (is_mutual or edge["cycle"])
        angle = math.atan2(y2 - y1, x2 - x1) + math.pi / 2
        middle = (x1 + x2) / 2 + bend * math.cos(angle), (y1 + y2) / 2 + bend * math.sin(angle)
        begin, end = _border((x1, y1), middle, wide), _border((x2, y2), middle, wide)
        points = [f"{number(x)} {number(y)}" for x, y in (begin, middle, end)]
        path = f"M{points[0]} Q{points[1]} {points[2]}"
    text = f"{edge['from']} waits for {edge['to']}: {edge['label']}"
    return element(
        "path", element("title", text), d=path, fill="none", style=f"stroke:{colour}",
        stroke_width=2 if edge["cycle"] else 1.4, marker_end=f"url(#{identity}-{tip})",
    )  # fmt: skip


def _border(place: Point, towards: Point, wide: float) -> Point:
    """Where the line from a process's middle leaves its box."""
    dx, dy = towards[0] - place[0], towards[1] - place[1]
    scale = min(
        (wide / 2 + 3) / abs(dx) if dx else math.inf, (_HIGH / 2 + 3) / abs(dy) if dy else math.inf
    )
    return place[0] + dx * scale, place[1] + dy * scale


def _node(name: object, place: Point, wide: float, about: Mapping[str, Any] | None) -> Markup:
    verdict = about["verdict"] if about else ""
    if about and about["text"].startswith(f"{name} ended "):  # see explain/failures.py
        verdict = "failed"
    is_stuck = verdict == "stuck"
    x, y = place[0] - wide / 2, place[1] - _HIGH / 2
    box = element(
        "rect", x=x, y=y, width=wide, height=_HIGH, rx=6, stroke_width=2 if is_stuck else 1.2,
        style=f"fill:rgba(130,130,130,.12);stroke:{STUCK if is_stuck else LINE}",
    )  # fmt: skip
    word = _VERDICTS.get(verdict, verdict)
    room = wide - 18 - length(word, 11)
    label = element(
        "text", cut(str(name), room, 15), x=x + 7, y=place[1] + 4.5,
        font_size=13, font_weight=600, style=f"fill:{TEXT}",
    )  # fmt: skip
    state = element(
        "text", word, x=x + wide - 7, y=place[1] + 4, font_size=10, text_anchor="end",
        style=f"fill:{STUCK if is_stuck else TEXT}",
    )  # fmt: skip
    title = element("title", about["text"] if about else str(name))
    return element("g", title, box, label, state)


def _tip(identity: str, colour: str) -> Markup:
    shape = element("path", d="M0 0 8 4 0 8z", style=f"fill:{colour}")
    anchor = {"viewBox": "0 0 8 8", "refX": "7.5", "refY": "4", "orient": "auto"}
    size = {"markerWidth": "9", "markerHeight": "9", "markerUnits": "userSpaceOnUse"}
    return element("marker", shape, id=identity, **anchor, **size)
