"""The arrows of a diagram: messages, each for itself or, where there are many, thinned out.

Many messages of few pairs are bundled: those that began and ended close to each other. Where that
would draw together what is far apart in time, a sample is drawn: every nth message.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.timeline import words
from sfm_kernel.observe.timeline.frame import Frame
from sfm_kernel.observe.timeline.svg import Markup, element, number
from sfm_kernel.observe.timeline.tables import first

ALONE = 240
"""Messages that are drawn as arrows of their own; of more, as many bundles or samples."""
FOREMOST = 24
"""The costliest late messages, and so many that were not received, are drawn alone in any case."""
GRAINS = (4.0, 6.0, 9.0, 13.0, 20.0)
"""px within which messages of a bundle begin and end."""
STUB = 15.0
"""px: the length of an arrow whose other end is not known."""

Flight = Mapping[str, Any]


def arrows(
    flights: Sequence[Flight],
    names: Mapping[str, str],
    lost: frozenset[str],
    frame: Frame,
    name: str,
) -> tuple[list[Markup], str]:
    """What is drawn of the messages, and a sentence about it; empty where each has its arrow.

    ``name`` begins the ids of the arrowheads.
    """
    if len(flights) <= ALONE:
        return [_arrow(one, names, one["id"] in lost, frame, name) for one in flights], ""
    late = sorted((one for one in flights if one["late"]), key=lambda one: -one["cost"])
    apart = late[:FOREMOST] + [one for one in flights if one["id"] in lost][:FOREMOST]
    known = {one["id"] for one in apart}
    rest = [one for one in flights if one["id"] not in known]
    bundles = _bundles(rest, frame)
    if bundles:
        drawn = [_bundle(bundle, names, frame, name) for bundle in bundles]
        how = f"in {words.count(len(bundles), 'bundle')}: a thicker line has more of them"
    else:
        each = -(-len(rest) // ALONE)
        sample = sorted(rest, key=first)[::each]
        drawn = [_arrow(one, names, False, frame, name) for one in sample]
        how = f"as a sample: one of {each}"
    drawn += [_arrow(one, names, one["id"] in lost, frame, name) for one in apart]
    kinds = ["the costliest late ones"] * bool(late) + ["those not received"] * bool(lost)
    alone = f"; {' and '.join(kinds)} alone" if kinds else ""
    return drawn, f"{words.count(len(flights), 'message')}, drawn {how}{alone}."


def _arrow(one: Flight, names: Mapping[str, str], lost: bool, frame: Frame, name: str) -> Markup:
    whole = one["sent"] is not None and one["received"] is not None
    kind = f"message late {one['late']}" if one["late"] else "message"
    kind += "" if whole or lost else " unknown"
    path, (x, y) = _path(one, frame)
    tip = None if lost else f"url(#{name}-{'late' if one['late'] else 'tip'})"
    shapes = [
        element("title", _words(one, names, lost, frame)),
        element("path", class_="hit", d=path),
        element("path", class_=kind, d=path, marker_end=tip),
    ]
    if lost:
        shapes.append(element("path", class_="message late", d=cross(x, y)))
    return element("g", *shapes)


def cross(x: float, y: float) -> str:
    """The mark of a message that was not received."""
    return f"M{number(x - 4)} {number(y - 4)}l8 8m0 -8l-8 8"


def _path(one: Flight, frame: Frame) -> tuple[str, tuple[float, float]]:
    """From the sender's bar to the receiver's; and where it ends."""
    y0, y1 = frame.rows[one["src"]], frame.rows[one["dest"]]
    half = math.copysign(frame.bar / 2, y1 - y0)
    if one["received"] is None:
        x, y = frame.x(one["sent"]), y0 + half
        # Straight into the row beside: where it would have arrived is not known.
        end = (x + STUB * 0.6, y + math.copysign(STUB * 0.8, half))
        return _line(x, y, *end), end
    x1 = frame.x(one["received"])
    if one["sent"] is None or one["sent"] < frame.begin - (frame.end - frame.begin):
        x, y = x1 - STUB * 0.6, y1 - half - math.copysign(STUB * 0.8, half)
        return _line(x, y, x1, y1 - half), (x1, y1 - half)
    x0 = frame.x(one["sent"])
    if one["src"] == one["dest"]:
        top, high = y0 - frame.bar / 2, y0 - frame.bar / 2 - 12
        points = " ".join(map(number, (x0, high, x1, high, x1, top)))
        return f"M{number(x0)} {number(top)}C{points}", (x1, top)
    return _line(x0, y0 + half, x1, y1 - half), (x1, y1 - half)


def _line(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"M{number(x0)} {number(y0)}L{number(x1)} {number(y1)}"


def _words(one: Flight, names: Mapping[str, str], lost: bool, frame: Frame) -> str:
    """What the arrow's tooltip says."""
    lines = [f"{names[one['src']]} → {names[one['dest']]}, {words.size(one['bytes'])}"]
    lines += [f"{name}={text}" for name, text in one["attributes"]]
    for end in ("sent", "received"):
        if one[end] is not None:
            where = code_locations.words(one[f"{end}_at"])
            time = one[end] - frame.begin
            when = f"at {words.duration(time)}" if time >= 0 else "before"
            lines.append(f"{end} {when}{', ' if where else ''}{where}")
    if lost:
        lines.append("not received")
    if one["late"]:
        waited = names[one["dest" if one["late"] == "sender" else "src"]]
        lines.append(f"late {one['late']}: {waited} waited {words.duration(one['cost'])}")
    return "\n".join(lines)


# ---- bundles ----


def _bundles(flights: Iterable[Flight], frame: Frame) -> list[list[Flight]]:
    """Messages between the same two, which began and ended in the same few px; none if that does
    not make them few enough."""
    for grain in GRAINS:
        bundles: dict[tuple[object, ...], list[Flight]] = defaultdict(list)
        for one in flights:
            ends = (one["sent"], one["received"])
            where = [None if end is None else frame.x(end) // grain for end in ends]
            bundles[(one["src"], one["dest"], *where)].append(one)
        if len(bundles) <= ALONE:
            return list(bundles.values())
    return []


def _bundle(bundle: Sequence[Flight], names: Mapping[str, str], frame: Frame, name: str) -> Markup:
    one = bundle[0]
    middle = {**one}
    for end in ("sent", "received"):
        if one[end] is not None:
            middle[end] = sum(each[end] for each in bundle) / len(bundle)
    path, _ = _path(middle, frame)
    text = f"{words.count(len(bundle), 'message')} {names[one['src']]} → {names[one['dest']]}, "
    text += words.size(sum(each["bytes"] for each in bundle))
    late = [each["cost"] for each in bundle if each["late"]]
    if late:
        text += f"\n{len(late)} of them late, {words.duration(sum(late))} in all"
    if one["received"] is None:
        text += "\nnot received, as far as is known"
    width = min(6.0, 1 + math.log2(len(bundle)) / 2)
    kind = "message many" if None not in (one["sent"], one["received"]) else "message many unknown"
    return element(
        "path", element("title", text), class_=kind, d=path, stroke_width=width,
        marker_end=f"url(#{name}-tip)",
    )  # fmt: skip
