"""A timeline in the trace event format, which Chrome and Perfetto (ui.perfetto.dev) show.

Source: Trace Event Format, "JSON Object Format": metadata, complete and flow events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sfm_kernel.observe import code_locations
from sfm_kernel.observe.timeline import words

Trace = dict[str, Any]

WORLD = 1  # the trace's pid of the world, whose processes are shown as threads


def trace(data: Mapping[str, Any], lost: frozenset[str]) -> Trace:
    """A trace with the world as a process and its processes as threads; us since the run began.

    Args:
        data: a "timeline" of ``schema.json``.
        lost: the ids of messages that were not received; each is an instant event as well.
    """
    return {
        "traceEvents": [*_names(data), *_spans(data), *_messages(data, lost)],
        "displayTimeUnit": "ms",
        "otherData": {
            "world": data["world"],
            "begin": datetime.fromtimestamp(data["begin"], UTC).isoformat(),
            "missing events": data["missing"],
        },
    }


def _names(data: Mapping[str, Any]) -> Iterator[Trace]:
    yield _meta("process_name", 0, name=f"world {data['world']}")
    for tid, process in enumerate(data["processes"], 1):
        rank = "" if process["rank"] in (None, process["name"]) else f" (rank {process['rank']})"
        yield _meta("thread_name", tid, name=f"{process['name']}{rank}")
        yield _meta("thread_sort_index", tid, sort_index=tid)


def _meta(kind: str, tid: int, **args: object) -> Trace:
    return {"ph": "M", "pid": WORLD, "tid": tid, "name": kind, "args": args}


def _spans(data: Mapping[str, Any]) -> Iterator[Trace]:
    threads = _threads(data)
    for span in data["spans"]:
        end = data["end"] if span["end"] is None else span["end"]
        begin, location = max(span["begin"], data["begin"]), code_locations.words(span["where"])
        yield {
            "ph": "X",
            "pid": WORLD,
            "tid": threads[span["uid"]],
            "name": span["state"],
            "cat": "state",
            "ts": _us(data, begin),
            "dur": round(max(0.0, end - begin) * 1e6, 3),
            "args": {"where": location} if location else {},
        }


def _messages(data: Mapping[str, Any], lost: frozenset[str]) -> Iterator[Trace]:
    threads = _threads(data)
    for flight in data["flights"]:
        common = {"pid": WORLD, "cat": "message", "name": "message", "id": flight["id"]}
        about = _about(flight)
        at_src = {"tid": threads[flight["src"]], "args": about}
        if flight["sent"] is not None:
            yield {**common, **at_src, "ph": "s", "ts": _us(data, flight["sent"])}
        if flight["received"] is not None:
            at_dest = {"tid": threads[flight["dest"]], "args": about}
            # "e": the flow ends in the enclosing span, not at the begin of the next one.
            yield {**common, **at_dest, "ph": "f", "bp": "e", "ts": _us(data, flight["received"])}
        elif flight["id"] in lost:
            mark = {**common, "name": "not received", "ph": "i", "s": "t"}
            yield {**mark, **at_src, "ts": _us(data, flight["sent"])}


def _about(flight: Mapping[str, Any]) -> dict[str, Any]:
    about = {f"attribute {name}": text for name, text in flight["attributes"]}
    about["bytes"] = flight["bytes"]
    for name in ("sent_at", "received_at"):
        if flight[name]:
            about[name.replace("_", " ")] = code_locations.words(flight[name])
    if flight["late"]:
        about["late"] = f"{flight['late']}, {words.duration(flight['cost'])}"
    return about


def _threads(data: Mapping[str, Any]) -> dict[str, int]:
    return {process["uid"]: tid for tid, process in enumerate(data["processes"], 1)}


def _us(data: Mapping[str, Any], time: float) -> float:
    return round((time - float(data["begin"])) * 1e6, 3)
