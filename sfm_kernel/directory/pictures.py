"""What a relay tells of the processes of its machine: packed for the wire, bounded and checked.

A picture is a list of states, as ``observe.snapshot.states`` reads them from segments. It crosses
machines, so that whoever takes one in checks it first.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence

from sfm_kernel.states import FIELDS, State, check

MOST_BYTES = 4 << 20
MOST_PACKED = 1 << 20
"""Bytes of a picture as JSON, and compressed."""


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
    states = [{field: one[field] for field in FIELDS} for one in states]
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
        check(state)
    return states


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
