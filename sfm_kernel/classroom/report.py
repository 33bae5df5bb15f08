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
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sfm_kernel.classroom.progress import COLUMNS, STATES
from sfm_kernel.observe.states import SCHEMA

LARGEST = 256_000
"""Most bytes of a report; a larger one is refused."""

PROCESSES, SENTENCES, MESSAGES, ATTRIBUTES, LISTINGS, LINES = 64, 40, 5, 12, 8, 60
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
    judged: list[Json] = [
        {**process, "where": _trimmed_location(process["where"]), "near": []}
        for process in diagnosis["processes"]
    ]
    trimmed = {**snapshot, "processes": processes, "links": []}
    verdict = {**diagnosis, "processes": judged}
    report: Json = {"name": name, "snapshot": trimmed, "diagnosis": verdict}
    report |= {"told": list(deadlocks), "code": list(code), **progress}
    if len(encoded(report)) > LARGEST:  # many processes, long names
        trimmed["processes"] = [{**process, "messages": []} for process in processes[:PROCESSES]]
        verdict |= {"sentences": verdict["sentences"][:5], "processes": []}
        verdict |= {"edges": [], "but_for": None}
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

    ``snapshot`` and ``diagnosis`` are valid by observe/schema.json, so that the page can show them
    with the widgets of the panel; what is not shared is null or empty in them.

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
    processes = _objects(snapshot, "processes")[:PROCESSES]
    shown = [_process(process, ahead, now) for process in processes]
    judged = _diagnosis(diagnosis, {process["name"] for process in shown}, ahead, now)
    engines = [process for process in shown if process["kind"] != "notebook"]
    since = [engine["since"] for engine in engines if engine["state"].startswith("blocked")]
    if judged["verdict"] == "deadlock" and judged["since"] is not None:
        since = [judged["since"]]
    return {
        "name": _text(report.get("name"), NAME).strip() or "?",
        "since": min(since, default=None),
        "snapshot": {"world": "", "time": now, "processes": shown, "sites": [], "links": []},
        "diagnosis": judged,
        "told": [_deadlock(record, ahead, now) for record in _objects(report, "told")[-3:]],
        "code": [_listing(listing) for listing in _objects(report, "code")[:LISTINGS]],
        "hand": _time_or_none(report, "hand", ahead, now),
        "exercises": [
            _exercise(exercise, ahead, now) for exercise in _objects(report, "exercises")[-COLUMNS:]
        ],
    }


def _known(kind: str, field: str) -> tuple[str, ...]:
    """The words that a field may have by the schema; the last one stands for an unknown word."""
    return tuple(SCHEMA["$defs"][kind]["properties"][field]["enum"])


_LIVE, _ENDED = SCHEMA["$defs"]["live_state"]["enum"], SCHEMA["$defs"]["state"]["oneOf"][1]["enum"]
_STATES = (*_LIVE, *_ENDED)
_KINDS = _known("process", "kind")
_DOES = _known("now", "does")
_JUDGEMENTS = _known("judgement", "verdict")
_EDGES = _known("edge", "kind")
_VERDICTS = ("deadlock", "waiting", "idle", "empty", "running")


def _word(of: Json, field: str, known: Sequence[str]) -> str:
    """A word of a field, the last one of ``known`` for others."""
    found = of.get(field)
    return found if isinstance(found, str) and found in known else known[-1]


def _process(process: Json, ahead: float, now: float) -> Json:
    polls, does, rank = process.get("polls"), process.get("now"), process.get("rank")
    return {
        **_NOT_SHARED,
        "uid": _text(process.get("uid"), NAME),
        "name": _text(process.get("name"), NAME),
        "rank": rank if type(rank) is int and 0 <= rank < 2**31 else None,
        "kind": _word(process, "kind", _KINDS),
        "alive": process.get("alive") is not False,
        "state": _word(process, "state", _STATES),
        "since": _time(process, "since", ahead, now),
        "unreachable": _time_or_none(process, "unreachable", ahead, now),
        "unseen": _time_or_none(process, "unseen", ahead, now),
        "waits": _text(process.get("waits"), LINE) or None,
        "polls": _polls(polls, ahead, now) if isinstance(polls, dict) else None,
        "now": _now(does) if isinstance(does, dict) else None,
        "where": _location(process.get("where")),
        **{field: _count(process, field) for field in ("depth", "bytes", "sent", "received")},
        "messages": [_message(message) for message in _objects(process, "messages")[:MESSAGES]],
    }


_NOT_SHARED: Json = {
    **dict.fromkeys(("size", "host", "site", "pid", "unreachable_why", "wait", "failed", "end")),
    "here": False, "call": 0, "others": [], "settled": True, "peers": [], "callbacks": [],
}  # fmt: skip


def _polls(polls: Json, ahead: float, now: float) -> Json:
    wait: Json = {"kind": "recv", "text": _text(_object(polls, "wait").get("text"), LINE)}
    wait |= {"template": [], "peers": None, "all": False, "until": None}
    wait |= {"context_id": "", "purpose": ""}
    since, location = _time(polls, "since", ahead, now), _location(polls.get("where"))
    return {"count": _count(polls, "count"), "since": since, "wait": wait, "where": location}


def _now(now: Json) -> Json | None:
    does = now.get("does")
    return {"does": does, "where": _location(now.get("where"))} if does in _DOES else None


def _location(location: Any) -> Json | None:
    if not isinstance(location, dict):
        return None
    cell, file = location.get("cell"), _text(location.get("file"), NAME)
    number = _count(location, "cell") if type(cell) is int else None
    line = _count(location, "line")
    return {"file": file, "line": line, "function": None, "cell": number, "cell_id": None}


def _message(message: Json) -> Json:
    pairs = _pairs(_list(message, "attributes"))
    shown = [[_text(name, NAME), _text(value, LINE)] for name, value in pairs[:ATTRIBUTES]]
    src = _text(message.get("src"), NAME) or None
    size = _count(message, "bytes")
    return {"src": src, "context_id": "", "bytes": size, "attributes": shown}


def _diagnosis(diagnosis: Json, names: Collection[str], ahead: float, now: float) -> Json:
    """A diagnosis that names only these processes."""

    def named(field: str) -> list[str]:
        found = (_text(name, NAME) for name in _list(diagnosis, field)[:PROCESSES])
        return [name for name in dict.fromkeys(found) if name in names]

    judged: list[Json] = [
        {
            "uid": _text(one.get("uid"), NAME),
            "name": _text(one.get("name"), NAME),
            "verdict": _word(one, "verdict", _JUDGEMENTS),
            "text": _text(one.get("text"), SENTENCE),
            "where": _location(one.get("where")),
            "call": 0,
            "near": [],
        }
        for one in _objects(diagnosis, "processes")[:PROCESSES]
    ]
    edges = [
        {
            "from": _text(edge.get("from"), NAME),
            "to": _text(edge.get("to"), NAME),
            "kind": _word(edge, "kind", _EDGES),
            "label": _text(edge.get("label"), NAME),
            "cycle": edge.get("cycle") is True,
        }
        for edge in _objects(diagnosis, "edges")[: 2 * PROCESSES]
    ]
    return {
        "world": "",
        "time": now,
        "verdict": _word(diagnosis, "verdict", _VERDICTS),
        "cycle": named("cycle"),
        "stuck": named("stuck"),
        "since": _time_or_none(diagnosis, "since", ahead, now),
        "title": _text(diagnosis.get("title"), LINE),
        "sentences": [_text(text, SENTENCE) for text in _list(diagnosis, "sentences")[:SENTENCES]],
        "edges": [edge for edge in edges if {edge["from"], edge["to"]} <= {*names}],
        "but_for": None,
        "processes": [one for one in judged if one["name"] in names],
    }


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


def _time_or_none(of: Json, name: str, ahead: float, now: float) -> float | None:
    return None if of.get(name) is None else _time(of, name, ahead, now)


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
