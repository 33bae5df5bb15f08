"""The report that a student's notebook sends to a classroom.

``report_of`` makes a report from a snapshot and a diagnosis, in the shapes of observe/schema.json,
without process ids, hosts and folders, which the teacher does not need. ``checked`` reads a report
in the classroom, where its bytes may be anything: the result has known fields, bounded lengths and
printable text.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from sfm_kernel.classroom.progress import COLUMNS, STATES

LARGEST = 256_000
"""Most bytes of a report; a larger one is refused."""

PROCESSES, SENTENCES, MESSAGES, LISTINGS, LINES = 64, 40, 5, 8, 60
"""Most of each in a report."""

NAME, LINE, SENTENCE = 60, 200, 1000
"""Most characters of each."""

Json = dict[str, Any]


class BadReport(ValueError):
    """The bytes are no report of a notebook."""


# ---- sending


def report_of(
    name: str,
    snapshot: Mapping[str, Any],
    diagnosis: Mapping[str, Any],
    deadlocks: Sequence[Mapping[str, Any]],
    code: Sequence[Mapping[str, Any]],
    progress: Mapping[str, Any],
) -> Json:
    """The report of a world.

    Args:
        deadlocks: the latest ones, each with ``time`` and ``text``.
        code: listings with ``title``, ``lines`` (number and text) and ``at`` (the lines of
            processes); empty if code is not shared.
        progress: see ``StudentProgress.report``.
    """
    processes = [_trimmed(process) for process in snapshot["processes"]]
    judged = [
        {**process, "where": _trimmed_location(process["where"]), "near": []}
        for process in diagnosis["processes"]
    ]
    trimmed = {**snapshot, "processes": processes, "links": []}
    verdict = {**diagnosis, "edges": [], "processes": judged}
    report: Json = {"name": name, "snapshot": trimmed, "diagnosis": verdict}
    report |= {"told": list(deadlocks), "code": list(code), **progress}
    if len(encoded(report)) > LARGEST:  # many processes, long names
        trimmed["processes"] = [{**process, "messages": []} for process in processes[:PROCESSES]]
        verdict |= {"sentences": verdict["sentences"][:5], "processes": [], "but_for": None}
        report["code"] = []
    return report


def encoded(report: Mapping[str, Any]) -> bytes:
    """The report as bytes."""
    text = json.dumps(report, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")


def _trimmed(process: Mapping[str, Any]) -> Json:
    polls, now = process["polls"], process["now"]
    return {
        **process,
        "pid": None,
        "host": None,
        "peers": [],
        "others": [],
        "messages": process["messages"][:MESSAGES],
        "where": _trimmed_location(process["where"]),
        "polls": polls and {**polls, "where": _trimmed_location(polls["where"])},
        "now": now and {**now, "where": _trimmed_location(now["where"])},
    }


def _trimmed_location(location: Mapping[str, Any] | None) -> Json | None:
    return None if location is None else {**location, "file": os.path.basename(location["file"])}


# ---- checking


def checked(body: bytes, now: float) -> Json:
    """The fields of a report that a classroom stores and shows.

    Args:
        now: the classroom's time (s since 1970), since the sender's clock may be wrong.
    Raises:
        BadReport: it has another shape.
    """
    try:
        report = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise BadReport(f"no JSON: {type(problem).__name__}") from None
    snapshot, diagnosis = _object(report, "snapshot"), _object(report, "diagnosis")
    ahead = _number(snapshot, "time") - now
    processes = _list(snapshot, "processes")[:PROCESSES]
    shown = [_process(process, ahead, now) for process in processes]
    verdict = _text(diagnosis.get("verdict"), NAME)
    engines = [process for process in shown if process["engine"]]
    since = [engine["since"] for engine in engines if engine["state"].startswith("blocked")]
    if verdict == "deadlock" and diagnosis.get("since") is not None:
        since = [_time(diagnosis, "since", ahead, now)]
    stuck = _list(diagnosis, "stuck")
    return {
        "name": _text(report.get("name"), NAME).strip() or "?",
        "verdict": verdict if verdict in _VERDICTS else "running",
        "title": _text(diagnosis.get("title"), LINE),
        "since": min(since, default=None),
        "sentences": [_text(text, SENTENCE) for text in _list(diagnosis, "sentences")[:SENTENCES]],
        "stuck": [_text(text, NAME) for text in stuck[:PROCESSES]],
        "processes": shown,
        "told": [_deadlock(record, ahead, now) for record in _objects(report, "told")[-3:]],
        "code": [_listing(listing) for listing in _objects(report, "code")[:LISTINGS]],
        "hand": None if report.get("hand") is None else _time(report, "hand", ahead, now),
        "exercises": [
            _exercise(exercise, ahead, now) for exercise in _objects(report, "exercises")[-COLUMNS:]
        ],
    }


_VERDICTS = ("deadlock", "waiting", "running", "idle", "empty")


def _process(process: Any, ahead: float, now: float) -> Json:
    if not isinstance(process, dict):
        raise BadReport("a process is no object")
    location, polls = process.get("where"), process.get("polls")
    waits = _text(process.get("waits"), LINE)
    if isinstance(polls, dict):
        waits = "polls " + _text(_object(polls, "wait").get("text"), LINE)
        location = polls.get("where")
    elif not waits and isinstance(activity := process.get("now"), dict):
        location = activity.get("where") or location
    state, since = _text(process.get("state"), NAME), "since"
    if process.get("unseen") is not None:  # it was so then
        waits = f"was {state}{f': {waits}' if waits else ''}"
        state = since = "unseen"
    rank = process.get("rank")
    return {
        "name": _text(process.get("name"), NAME),
        "rank": rank if type(rank) is int and 0 <= rank < 2**31 else None,
        "engine": process.get("kind") != "notebook",
        "state": state,
        "since": _time(process, since, ahead, now),
        "waits": waits,
        "where": _location_text(location),
        "depth": _count(process, "depth"),
        "sent": _count(process, "sent"),
        "received": _count(process, "received"),
        "messages": [_message(message) for message in _objects(process, "messages")[:MESSAGES]],
    }


def _location_text(location: Any) -> str:
    """The location in words, as ``observe.code_locations.words`` makes them."""
    if not isinstance(location, dict):
        return ""
    cell, line = location.get("cell"), location.get("line")
    source = f"cell {cell}" if type(cell) is int else _text(location.get("file"), NAME)
    return f"{source}, line {line}" if type(line) is int and line else source


def _message(message: Json) -> str:
    pairs = _pairs(_list(message, "attributes"))
    shown = [f"{_text(name, NAME)}={_text(value, NAME)}" for name, value in pairs if name != "dest"]
    return _text(", ".join(shown), LINE)


def _listing(listing: Json) -> Json:
    pairs = _pairs(_list(listing, "lines")[:LINES])
    lines = [[number, _text(text, LINE)] for number, text in pairs if type(number) is int]
    current = [line for line in _list(listing, "at")[:LINES] if type(line) is int]
    return {"title": _text(listing.get("title"), NAME), "lines": lines, "at": current}


def _pairs(items: list[Any]) -> list[list[Any]]:
    """The items that are lists of two."""
    return [item for item in items if isinstance(item, list) and len(item) == 2]


def _exercise(exercise: Json, ahead: float, now: float) -> Json:
    name, state = exercise.get("name"), exercise.get("state")
    if not isinstance(name, str) or len(name) > NAME or not name.isidentifier():
        raise BadReport("an exercise is not named like a function")
    if state not in STATES:
        raise BadReport("an exercise is in no known state")
    time = _time(exercise, "time", ahead, now)
    return {"name": name, "state": state, "tries": _count(exercise, "tries"), "time": time}


def _deadlock(deadlock: Json, ahead: float, now: float) -> Json:
    """The time of a deadlock, and its text with its line breaks."""
    text = deadlock.get("text")
    lines = text.split("\n")[:SENTENCES] if isinstance(text, str) else []
    shown = "\n".join(_text(line, SENTENCE) for line in lines)
    return {"time": _time(deadlock, "time", ahead, now), "text": shown}


def _object(of: Any, name: str) -> Json:
    found = of.get(name) if isinstance(of, dict) else None
    if not isinstance(found, dict):
        raise BadReport(f"no {name}")
    return found


def _list(of: Json, name: str) -> list[Any]:
    found = of.get(name, [])
    if not isinstance(found, list):
        raise BadReport(f"{name} is no list")
    return found


def _objects(of: Json, name: str) -> list[Json]:
    found = _list(of, name)
    if not all(isinstance(item, dict) for item in found):
        raise BadReport(f"{name} has items that are no objects")
    return found


def _number(of: Json, name: str) -> float:
    found = of.get(name)
    if type(found) not in (int, float) or not math.isfinite(found) or abs(found) > 1e11:  # type: ignore[arg-type]
        raise BadReport(f"{name} is no number")
    return float(found)  # type: ignore[arg-type]


def _time(of: Json, name: str, ahead: float, now: float) -> float:
    """A time of the sender, converted to this machine's clock, and not later than now."""
    return min(now, _number(of, name) - ahead)


def _count(of: Json, name: str) -> int:
    found = of.get(name)
    return found if type(found) is int and 0 <= found < 2**53 else 0


def _text(value: Any, most: int) -> str:
    """Printable text in one line; "" for a value that is neither text nor number."""
    if type(value) is int and abs(value) < 2**53:
        value = str(value)
    if not isinstance(value, str):
        return ""
    cut = value if len(value) <= most else value[: most - 1] + "…"
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in cut)
