"""What the segment of a process says: its fields, and whether they make sense.

Who reads a segment checks it, since anything of its user may have written there; and so does who
is told of one by another machine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

State = dict[str, Any]
"""What one process's segment says; its fields are in ``FIELDS``."""


class Pictures(list[State]):
    """What was told of processes elsewhere.

    Attributes:
        gateways: of their world; "uid", "site", "address", "name" of each, and what it has told of
            itself last ("report").
    """

    gateways: Sequence[Mapping[str, Any]] = ()


UNSETTLED = (1 << 64) - 1
"""In ``examined``: a blocked call has not looked at what has arrived, or the other side can end it
by itself."""

MOST_PID = 1 << 22
"""No process of Linux has a larger number (PID_MAX_LIMIT)."""

MOST_TEXT = 1 << 15
"""Characters; no text of a segment has room for so many."""

_UID = re.compile(r"[0-9a-f]{32}")
_PEER = re.compile(r"([0-9a-f]{16})?")
_CODE = re.compile(r"[0-9]{0,18}\t[^\t]*\t[0-9]{1,18}\t[^\t]*\t.*", re.DOTALL)
_COUNTED = 1 << 64


def damaged(uid: str, alive: bool) -> State:
    """The state of a process whose segment cannot be read."""
    texts = dict.fromkeys(("waits", "facts", "info", "summary", "code"))
    counts = dict.fromkeys(("call", "line", "depth", "bytes", "sent", "received", "arrived"), 0)
    doing = {"uid": uid, "alive": alive, "state": "damaged", "since": 0.0, "until": 0.0}
    # Its account of all its peers is one that tells nothing.
    return {
        **doing,
        **texts,
        **counts,
        "others": "",
        "examined": UNSETTLED,
        "peers": [("", 0, 0, 0, 0)],
        "polls": None,
        "main": None,
    }


def are_sound(state: State) -> bool:
    """Whether the texts in a segment are what a process writes there; the others mean nothing."""
    return all(
        FIELDS[field](state[field])
        for field in ("info", "facts", "others", "code", "summary", "polls", "main")
    )


def check(state: Any) -> None:
    """Raise ValueError unless it has the fields of a state, and each its type."""
    if not isinstance(state, dict) or state.keys() != FIELDS.keys():
        raise ValueError(f"a state has {', '.join(FIELDS)}")
    for field, is_right in FIELDS.items():
        if not is_right(state[field]):
            raise ValueError(f"a state's {field} cannot be {str(state[field])[:40]!r}")


def parse(text: str | None) -> dict[str, Any]:
    """What a segment's text holds; empty where it was being written, or cut. Not to be changed."""
    found = _loaded(text)
    return found if isinstance(found, dict) else {}


def parse_others(text: str | None) -> list[Any] | None:
    """The same of ``others``: None where it was being written, or cut."""
    found = _loaded(text) if text else []
    return found if isinstance(found, list) else None


@lru_cache(1024)
def _loaded(text: str | None) -> Any:
    try:
        found = json.loads(text or "{}")
        json.dumps(found, ensure_ascii=False).encode()  # no halves of characters
    except (ValueError, RecursionError):
        return {}
    return found


def is_pid(value: Any) -> bool:
    """Whether a process can have this number."""
    return type(value) is int and 0 < value <= MOST_PID


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _COUNTED


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= MOST_TEXT)


def _is_summary(value: Any) -> bool:
    return _is_text(value) and all("\t" in line for line in (value or "").split("\n")[:-1])


def _is_name(value: Any) -> bool:
    return type(value) in (str, int)


@lru_cache(1024)
def _is_code(value: str) -> bool:
    return bool(_CODE.fullmatch(value) or not value)


def _is_place(value: Any) -> bool:
    return _is_text(value) and _is_code(value or "")


def _is_peers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list)
        and len(one) == 5
        and isinstance(one[0], str)
        and bool(_PEER.fullmatch(one[0]))
        and all(map(_is_count, one[1:]))
        for one in value
    )


def _is_polls(value: Any) -> bool:
    """What it asks for in vain: how often, how long, until when, where, and what, as JSON."""
    if value is None:
        return True
    if not (isinstance(value, (list, tuple)) and len(value) == 6):
        return False
    count, lasted, ago, line, code, about = value
    return (
        _is_count(count)
        and _is_time(lasted)
        and _is_time(ago)
        and _is_count(line)
        and _is_place(code)
        and _is_facts(about)
        and isinstance(parse(about).get("text", ""), str)
    )


def _is_main(value: Any) -> bool:
    """What its main thread is in, on which line of which code."""
    if value is None:
        return True
    if not (isinstance(value, (list, tuple)) and len(value) == 3):
        return False
    return value[0] in DOINGS and _is_count(value[1]) and _is_place(value[2])


def _is_info(value: Any) -> bool:
    return _is_text(value) and _is_about(value)


@lru_cache(1024)
def _is_about(text: str | None) -> bool:
    """Who it is, as JSON; or what is left of that where it was being written."""
    about = parse(text)
    return (
        _is_name(about.get("name", ""))
        and about.get("kind", "process") in ("engine", "notebook", "process")
        and isinstance(about.get("host"), str | None)
        and isinstance(about.get("site"), str | None)
        and isinstance(about.get("serving"), str | None)
        and all(type(about.get(field)) in (int, type(None)) for field in ("rank", "size"))
        and (about.get("pid") is None or is_pid(about["pid"]))
        and _are_texts(about.get("contexts", {}))
        and _are_silences(about.get("unreachable", {}))
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _are_silences(value: Any) -> bool:
    """Since when each of these processes cannot be reached, and why."""
    return isinstance(value, dict) and all(
        isinstance(one, list) and len(one) == 2 and _is_time(one[0]) and _is_text(one[1])
        for one in value.values()
    )


def _is_facts(value: Any) -> bool:
    return _is_text(value) and _is_wait(value)


@lru_cache(1024)
def _is_wait(text: str | None) -> bool:
    """What it waits for, as JSON; or what is left of that where it was being written."""
    facts = parse(text)
    if not facts:
        return True
    words = all(isinstance(facts.get(field, ""), str) for field in ("context_id", "purpose"))
    if facts.get("kind") == "send":
        return words and isinstance(facts.get("peer"), str)
    peers, template = facts.get("peers", ""), facts.get("template")
    group = facts.get("group")
    return (
        words
        and (
            group is None or (isinstance(group, list) and [type(one) for one in group] == [str] * 2)
        )
        and facts.get("kind") in ("recv", "collective", "cell", "join", "other")
        and type(facts.get("all")) is bool
        and type(facts.get("known", 0)) in (int, float)
        and (peers is None or (isinstance(peers, list) and all(map(_is_name, peers))))
        and isinstance(template, list)
        and all(
            isinstance(one, list) and [type(part) for part in one] == [str, str, bool]
            for one in template
        )
    )


def _is_others(value: Any) -> bool:
    return _is_text(value) and _are_others(value)


@lru_cache(1024)
def _are_others(text: str | None) -> bool:
    return all(
        isinstance(one, list)
        and len(one) == 5
        and one[0] in _KINDS
        and isinstance(one[1], str)
        and _is_place(one[2])
        and _is_count(one[3])
        and type(one[4]) in (int, type(None))
        for one in parse_others(text) or ()
    )


_KINDS = ("thread", "callback", "signal", "timer", "hook", "task", "more")
_CALLS = ("recv", "send", "collective", "cell")
DOINGS = ("computes", "input", "lock", "sleep", "child", "system", "native")
"""What a main thread can be in: ``In`` in native/src/main_thread.rs."""

_STATES = ("idle", "running", "left", "damaged", *(f"blocked in {call}" for call in _CALLS))

FIELDS: dict[str, Callable[[Any], bool]] = {
    "uid": lambda value: isinstance(value, str) and bool(_UID.fullmatch(value)),
    "alive": lambda value: type(value) is bool,
    "state": lambda value: value in _STATES,
    "call": _is_count,
    "since": _is_time,
    "until": _is_time,
    "waits": _is_text,
    "facts": _is_facts,
    "others": _is_others,
    "info": _is_info,
    "summary": _is_summary,
    "line": _is_count,
    "code": _is_place,
    "depth": _is_count,
    "bytes": _is_count,
    "sent": _is_count,
    "received": _is_count,
    "arrived": _is_count,
    "examined": _is_count,
    "peers": _is_peers,
    "polls": _is_polls,
    "main": _is_main,
}
"""Of each field whether it can hold a value."""
