"""What a student's notebook sends, and what a classroom believes of it.

``sent`` makes it of a snapshot and a diagnosis, in the shapes of observe/schema.json, without what
the teacher has no use for: process ids, hosts, folders. ``believed`` reads it at the other end,
where it may be anything: what comes out has known fields, bounded lengths and printable text.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

LARGEST = 256_000
"""Bytes of a picture; a larger one is refused."""

PROCESSES, SENTENCES, MESSAGES, LISTINGS, LINES = 64, 40, 5, 8, 60
"""How many of each are kept."""

NAME, LINE, SENTENCE = 60, 200, 1000
"""Characters."""

Json = dict[str, Any]


class NoPicture(ValueError):
    """What came is not what a notebook sends."""


# ---- sending


def sent(
    name: str,
    snapshot: Mapping[str, Any],
    diagnosis: Mapping[str, Any],
    told: Sequence[Mapping[str, Any]],
    code: Sequence[Mapping[str, Any]],
) -> Json:
    """What is sent of a world.

    Args:
        told: deadlocks of late, each with ``time`` and ``text``.
        code: listings with ``title``, ``lines`` (number and text) and ``at`` (the lines where
            somebody is); none where code is not shared.
    """
    seen = {**snapshot, "processes": [_trimmed(one) for one in snapshot["processes"]], "links": []}
    judged = [{**one, "where": _place(one["where"]), "near": []} for one in diagnosis["processes"]]
    said = {**diagnosis, "edges": [], "processes": judged}
    picture: Json = {"name": name, "snapshot": seen, "diagnosis": said}
    picture |= {"told": list(told), "code": list(code)}
    if len(encoded(picture)) > LARGEST:  # many processes, long names
        seen["processes"] = [{**one, "messages": []} for one in seen["processes"]][:PROCESSES]
        said |= {"sentences": said["sentences"][:5], "processes": [], "but_for": None}
        picture["code"] = []
    return picture


def encoded(picture: Mapping[str, Any]) -> bytes:
    """The bytes that are sent."""
    text = json.dumps(picture, ensure_ascii=False, separators=(",", ":"))
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
        "where": _place(process["where"]),
        "polls": polls and {**polls, "where": _place(polls["where"])},
        "now": now and {**now, "where": _place(now["where"])},
    }


def _place(where: Mapping[str, Any] | None) -> Json | None:
    return None if where is None else {**where, "file": os.path.basename(where["file"])}


# ---- believing


def believed(body: bytes, now: float) -> Json:
    """What a classroom keeps and shows of a picture.

    Args:
        now: the time here, s since 1970: the sender's clock may be wrong.
    Raises:
        NoPicture: it has another shape.
    """
    try:
        told = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise NoPicture(f"no JSON: {type(problem).__name__}") from None
    snapshot, diagnosis = _object(told, "snapshot"), _object(told, "diagnosis")
    ahead = _number(snapshot, "time") - now
    processes = _list(snapshot, "processes")[:PROCESSES]
    shown = [_process(one, ahead, now) for one in processes]
    verdict = _text(diagnosis.get("verdict"), NAME)
    blocked = [one for one in shown if one["state"].startswith("blocked") and one["engine"]]
    since = [one["since"] for one in blocked]
    if verdict == "deadlock" and diagnosis.get("since") is not None:
        since = [_time(diagnosis, "since", ahead, now)]
    stuck = _list(diagnosis, "stuck")
    return {
        "name": _text(told.get("name"), NAME).strip() or "?",
        "verdict": verdict if verdict in _VERDICTS else "running",
        "title": _text(diagnosis.get("title"), LINE),
        "since": min(since, default=None),
        "sentences": [_text(one, SENTENCE) for one in _list(diagnosis, "sentences")[:SENTENCES]],
        "stuck": [_text(one, NAME) for one in stuck[:PROCESSES]],
        "processes": shown,
        "told": [
            {"time": _time(one, "time", ahead, now), "text": _told(one.get("text"))}
            for one in _objects(told, "told")[-3:]
        ],
        "code": [_listing(one) for one in _objects(told, "code")[:LISTINGS]],
    }


_VERDICTS = ("deadlock", "waiting", "running", "idle", "empty")


def _process(one: Any, ahead: float, now: float) -> Json:
    if not isinstance(one, dict):
        raise NoPicture("a process is no object")
    where, polls = one.get("where"), one.get("polls")
    waits = _text(one.get("waits"), LINE)
    if isinstance(polls, dict):
        waits = "polls " + _text(_object(polls, "wait").get("text"), LINE)
        where = polls.get("where")
    elif not waits and isinstance(doing := one.get("now"), dict):
        where = doing.get("where") or where
    rank = one.get("rank")
    return {
        "name": _text(one.get("name"), NAME),
        "rank": rank if type(rank) is int and 0 <= rank < 2**31 else None,
        "engine": one.get("kind") != "notebook",
        "state": _text(one.get("state"), NAME),
        "since": _time(one, "since", ahead, now),
        "waits": waits,
        "where": _where(where),
        "depth": _count(one, "depth"),
        "sent": _count(one, "sent"),
        "received": _count(one, "received"),
        "messages": [_message(each) for each in _objects(one, "messages")[:MESSAGES]],
    }


def _where(where: Any) -> str:
    """As ``observe.code_locations.words`` says it."""
    if not isinstance(where, dict):
        return ""
    cell, line = where.get("cell"), where.get("line")
    place = f"cell {cell}" if type(cell) is int else _text(where.get("file"), NAME)
    return f"{place}, line {line}" if type(line) is int and line else place


def _message(one: Json) -> str:
    pairs = [each for each in _list(one, "attributes") if isinstance(each, list) and len(each) == 2]
    shown = [f"{_text(name, NAME)}={_text(value, NAME)}" for name, value in pairs if name != "dest"]
    return _text(", ".join(shown), LINE)


def _listing(one: Json) -> Json:
    lines = [
        [number, _text(text, LINE)]
        for number, text in (
            each
            for each in _list(one, "lines")[:LINES]
            if isinstance(each, list) and len(each) == 2
        )
        if type(number) is int
    ]
    at = [line for line in _list(one, "at")[:LINES] if type(line) is int]
    return {"title": _text(one.get("title"), NAME), "lines": lines, "at": at}


def _told(text: Any) -> str:
    """A deadlock in its lines."""
    lines = text.split("\n")[:SENTENCES] if isinstance(text, str) else []
    return "\n".join(_text(line, SENTENCE) for line in lines)


def _object(of: Any, name: str) -> Json:
    found = of.get(name) if isinstance(of, dict) else None
    if not isinstance(found, dict):
        raise NoPicture(f"no {name}")
    return found


def _list(of: Json, name: str) -> list[Any]:
    found = of.get(name, [])
    if not isinstance(found, list):
        raise NoPicture(f"{name} is no list")
    return found


def _objects(of: Json, name: str) -> list[Json]:
    found = _list(of, name)
    if not all(isinstance(one, dict) for one in found):
        raise NoPicture(f"{name} has other things than objects")
    return found


def _number(of: Json, name: str) -> float:
    found = of.get(name)
    if type(found) not in (int, float) or not math.isfinite(found) or abs(found) > 1e11:  # type: ignore[arg-type]
        raise NoPicture(f"{name} is no number")
    return float(found)  # type: ignore[arg-type]


def _time(of: Json, name: str, ahead: float, now: float) -> float:
    """In this machine's clock, and not after now."""
    return min(now, _number(of, name) - ahead)


def _count(of: Json, name: str) -> int:
    found = of.get(name)
    return found if type(found) is int and 0 <= found < 2**53 else 0


def _text(value: Any, most: int) -> str:
    """Printable text in one line; what else there is becomes nothing."""
    if type(value) is int and abs(value) < 2**53:
        value = str(value)
    if not isinstance(value, str):
        return ""
    cut = value if len(value) <= most else value[: most - 1] + "…"
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in cut)
