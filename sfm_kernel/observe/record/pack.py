"""A timeline in few bytes, as labextension/src/record/data.ts reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sfm_kernel.observe.timeline import Timeline, words

LARGEST = 1_200_000
"""Bytes of a timeline; the rest of a file takes some 300 kB."""


def cut(run: Timeline) -> tuple[Timeline, list[str]]:
    """The timeline, or as much of its end as fits, and a sentence about what does not."""
    if _size(run) <= LARGEST:
        return run, []
    data = run.data
    whole = data["end"] - data["begin"]
    low, high = 0.0, 1.0  # which part of the time is left out
    for _ in range(12):
        middle = (low + high) / 2
        if _size(run.between(middle * whole, whole)) > LARGEST:
            low = middle
        else:
            high = middle
    part = run.between(high * whole, whole)
    messages = len(data["flights"]) - len(part.data["flights"])
    begin = words.duration(high * whole)
    return part, [
        f"The run was too long for one file: its first {begin} of {words.duration(whole)} are left "
        f"out, with {words.count(messages, 'message')} of {len(data['flights'])}."
    ]


def _size(run: Timeline) -> int:
    return len(json.dumps(packed(run.data), ensure_ascii=False).encode(errors="replace"))


def packed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The schema's timeline with times in us since its begin; processes, states and places once."""
    begin = data["begin"]
    who = {one["uid"]: nth for nth, one in enumerate(data["processes"])}
    states: dict[str, int] = {}
    places: dict[tuple[Any, ...], int] = {}
    listed: list[Mapping[str, Any]] = []

    def at(time: float | None) -> int | None:
        return None if time is None else round((time - begin) * 1e6)

    def place(where: Mapping[str, Any] | None) -> int | None:
        if where is None:
            return None
        key = tuple(where.values())
        if key not in places:
            places[key] = len(places)
            listed.append(where)
        return places[key]

    spans = [
        [
            who[one["uid"]],
            at(one["begin"]),
            at(one["end"]),
            states.setdefault(one["state"], len(states)),
            place(one["where"]),
        ]
        for one in data["spans"]
    ]
    flights = [
        [
            who[one["src"]],
            who[one["dest"]],
            one["number"],
            at(one["sent"]),
            at(one["received"]),
            one["bytes"],
            one["attributes"],
            place(one["sent_at"]),
            place(one["received_at"]),
            one["late"],
            round(one["cost"], 6),
        ]
        for one in data["flights"]
    ]
    kept = {name: data[name] for name in ("world", "begin", "missing", "processes")}
    kept |= {"end": at(data["end"]), "states": list(states), "places": listed}
    return kept | {"spans": spans, "flights": flights}
