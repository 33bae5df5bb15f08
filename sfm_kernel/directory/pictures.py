"""What a relay tells of the processes of its machine: packed for the wire, bounded and checked.

A picture is a list of states, as ``observe.snapshot.states`` reads them from segments. It crosses
machines, so that whoever takes one in checks it first.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

State = dict[str, Any]
"""What one process's segment says; its fields are in ``_FIELDS``."""

UNSETTLED = (1 << 64) - 1
"""In ``examined``: it is not known what a blocked call has looked at."""

MOST_BYTES = 4 << 20
MOST_PACKED = 1 << 20
"""Bytes of a picture as JSON, and compressed."""

_UID = re.compile(r"[0-9a-f]{32}")
_PEER = re.compile(r"([0-9a-f]{16})?")
_CODE = re.compile(r"[0-9]*\t[^\t]*\t[0-9]+\t[^\t]*\t.*", re.DOTALL)
_COUNTED = 1 << 64


def pack(states: Sequence[State]) -> bytes:
    """The picture for the wire, at most ``MOST_PACKED`` bytes.

    Of one that is too large goes first what is in the inboxes, then the account of each peer (so
    that nobody takes a message for received that is not), then the last processes.
    """
    for smaller in _ever_smaller(states):
        text = json.dumps(smaller, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) <= MOST_BYTES and len(packed := zlib.compress(text, 1)) <= MOST_PACKED:
            return packed
    return zlib.compress(b"[]")


def _ever_smaller(states: Sequence[State]) -> Iterator[Sequence[State]]:
    states = [{field: one[field] for field in _FIELDS} for one in states]
    yield states
    for lines in (10, 1, 0):
        yield [one | {"summary": _first_lines(one["summary"], lines)} for one in states]
    count = len(states)
    while count:
        kept = states[:count]
        yield [one | {"summary": None, "peers": [("", 0, 0, 0, 0)]} for one in kept]
        count //= 2


def _first_lines(text: str | None, count: int) -> str | None:
    return text and "\n".join(text.split("\n")[:count])


def unpack(packed: bytes) -> list[State]:
    """The states in a picture; raises ValueError, and needs little memory, where it is none."""
    if len(packed) > MOST_PACKED:
        raise ValueError(f"a picture of {len(packed)} bytes, and {MOST_PACKED} are allowed")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(packed, MOST_BYTES)
        if not unpacker.eof:
            raise ValueError(f"a picture that is cut, or larger than {MOST_BYTES} bytes")
        states = json.loads(text, parse_constant=_refuse)
    except (zlib.error, RecursionError) as error:
        raise ValueError(f"no picture: {error}") from None
    if not isinstance(states, list):
        raise ValueError("a picture is a list of states")
    for state in states:
        _check(state)
    return states


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _check(state: Any) -> None:
    """Raise ValueError unless it has the fields of a state, and each its type."""
    if not isinstance(state, dict) or state.keys() != _FIELDS.keys():
        raise ValueError(f"a state has {', '.join(_FIELDS)}")
    for field, is_right in _FIELDS.items():
        if not is_right(state[field]):
            raise ValueError(f"a state's {field} cannot be {str(state[field])[:40]!r}")


def _is_time(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _COUNTED


def _is_text(value: Any) -> bool:
    return isinstance(value, str | None)


def _is_summary(value: Any) -> bool:
    return _is_text(value) and all("\t" in line for line in (value or "").split("\n")[:-1])


def _is_name(value: Any) -> bool:
    return type(value) in (str, int)


def _is_place(value: Any) -> bool:
    return value is None or (isinstance(value, str) and bool(_CODE.fullmatch(value) or not value))


def _is_peers(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list)
        and len(one) == 5
        and isinstance(one[0], str)
        and bool(_PEER.fullmatch(one[0]))
        and all(map(_is_count, one[1:]))
        for one in value
    )


def _is_info(value: Any) -> bool:
    """Who it is, as JSON; or what is left of that where it was being written."""
    about = _json(value)
    return _is_text(value) and (
        _is_name(about.get("name", ""))
        and about.get("kind", "process") in ("engine", "notebook", "process")
        and isinstance(about.get("host"), str | None)
        and all(type(about.get(field)) in (int, type(None)) for field in ("rank", "size", "pid"))
    )


def _is_facts(value: Any) -> bool:
    """What it waits for, as JSON; or what is left of that where it was being written."""
    facts = _json(value)
    if not facts:
        return _is_text(value)
    words = all(isinstance(facts.get(field, ""), str) for field in ("space", "purpose"))
    if facts.get("kind") == "send":
        return words and isinstance(facts.get("peer"), str)
    peers, template = facts.get("peers", ""), facts.get("template")
    return (
        words
        and facts.get("kind") in ("recv", "collective", "cell", "other")
        and type(facts.get("all")) is bool
        and (peers is None or (isinstance(peers, list) and all(map(_is_name, peers))))
        and isinstance(template, list)
        and all(
            isinstance(one, list) and [type(part) for part in one] == [str, str, bool]
            for one in template
        )
    )


def _json(text: Any) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_STATES = ("idle", "running", "left", *(f"blocked in {what}" for what in
           ("recv", "send", "collective", "cell")))  # fmt: skip

_FIELDS: dict[str, Callable[[Any], bool]] = {
    "uid": lambda value: isinstance(value, str) and bool(_UID.fullmatch(value)),
    "alive": lambda value: type(value) is bool,
    "state": lambda value: value in _STATES,
    "call": _is_count,
    "since": _is_time,
    "until": _is_time,
    "waits": _is_text,
    "facts": _is_facts,
    "others": _is_text,
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
}
