"""The bars of a diagram: spans, drawn alone or, where they are narrow, by their share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.timeline import style, words
from sfm_kernel.observe.timeline.frame import Frame
from sfm_kernel.observe.timeline.svg import Markup, element, number

ALONE = 600
"""Spans that are drawn as bars of their own, with their words."""
NARROW = 1.5
"""px: narrower ones are not."""
CROWD = 8.0
"""px: in so much of a row each state gets the width that is its share."""

Piece = tuple[float, float, str]
"""From x to x, and the state."""


def bars(
    spans: Iterable[Mapping[str, Any]], names: Mapping[str, str], frame: Frame
) -> tuple[list[Markup], int]:
    """What is drawn of the spans, and how many of them have no bar of their own."""
    rows = defaultdict(list)
    for span in spans:
        if (
            span["uid"] in frame.rows
            and span["begin"] < frame.end
            and _end(span, frame) > frame.begin
        ):
            rows[span["uid"]].append(span)
    least = _least([_width(span, frame) for row in rows.values() for span in row])
    drawn: list[Markup] = []
    short = 0
    for uid, row in rows.items():
        middle = frame.rows[uid]
        narrow = [span for span in row if _width(span, frame) < least]
        short += len(narrow)
        if narrow:
            drawn.append(_crowds(narrow, names[uid], middle, frame))
        drawn += [_bar(span, names[uid], middle, frame) for span in row
                  if _width(span, frame) >= least]  # fmt: skip
    return drawn, short


def _least(widths: list[float]) -> float:
    """From which width on a span is drawn alone: all, or so that not more than ALONE are."""
    if len(widths) <= ALONE:
        return 0.0
    return max(NARROW, sorted(widths, reverse=True)[ALONE] * 1.000001)


def _bar(span: Mapping[str, Any], name: str, middle: float, frame: Frame) -> Markup:
    seconds = _end(span, frame) - span["begin"]
    state = style.STATES[span["state"]]
    lasts = ", and still is" if span["end"] is None else ""
    begin = words.duration(max(0.0, span["begin"] - frame.begin))
    text = f"{name}: {state}, {words.duration(seconds)}, from {begin} on{lasts}"
    where = code_locations.words(span["where"])
    title = element("title", f"{text}\n{where}" if where else text)
    high = frame.bar * style.height(span["state"])
    return element(
        "rect", title, class_=style.css(span["state"]), x=frame.within(span["begin"]),
        y=middle - high / 2, width=_width(span, frame), height=high,
    )  # fmt: skip


def _crowds(narrow: list[Mapping[str, Any]], name: str, middle: float, frame: Frame) -> Markup:
    """One path for each state."""
    paths: dict[str, list[str]] = defaultdict(list)
    for begin, end, state in _pieces(narrow, frame):
        high = frame.bar * style.height(state)
        x, y, width = number(begin), number(middle - high / 2), number(max(end - begin, 0.01))
        paths[state].append(f"M{x} {y}h{width}v{number(high)}h-{width}z")
    title = element("title", f"{name}: {words.count(len(narrow), 'short span')}, each by its share")
    shapes = [
        element("path", class_=style.css(state), d="".join(paths[state]), stroke="none")
        for state in style.STATES
        if state in paths
    ]
    return element("g", title, *shapes, class_="crowd")


def _pieces(narrow: list[Mapping[str, Any]], frame: Frame) -> Iterator[Piece]:
    """Narrow spans that follow each other, together over some px: a piece for each state."""
    shares: dict[str, float] = defaultdict(float)
    begin = end = frame.left
    for span in narrow:
        left, right = frame.within(span["begin"]), frame.within(_end(span, frame))
        if shares and (left > end + 0.01 or right - begin > CROWD):
            yield from _shared(shares, begin, end)
            shares.clear()
        if not shares:
            begin = left
        shares[span["state"]] += right - left
        end = right
    yield from _shared(shares, begin, end)


def _shared(shares: Mapping[str, float], begin: float, end: float) -> Iterator[Piece]:
    scale = (end - begin) / (sum(shares.values()) or 1)
    for state in style.STATES:
        if shares.get(state):
            width = scale * shares[state]
            yield begin, begin + width, state
            begin += width


def _end(span: Mapping[str, Any], frame: Frame) -> float:
    return frame.end if span["end"] is None else float(span["end"])


def _width(span: Mapping[str, Any], frame: Frame) -> float:
    return frame.within(_end(span, frame)) - frame.within(span["begin"])
