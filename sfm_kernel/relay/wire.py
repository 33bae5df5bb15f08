"""The messages of relays and observers: snapshots, orders and answers, packed and checked.

A snapshot is the list of the states that ``observe.snapshot.states`` reads from the segments of one
machine. The receiver checks each state by the schema, since it comes from another machine. An order
asks a relay to end a process's blocked call, or to interrupt the process.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from sfm_kernel.directory.carrier import LARGEST_SNAPSHOT
from sfm_kernel.observe.deadlocks import STEPS
from sfm_kernel.observe.states import FIELDS, State, check

LARGEST_TEXT = 4 << 20
"""The most bytes of a snapshot as JSON; compressed it has at most ``LARGEST_SNAPSHOT``."""

ORDERS = (*STEPS, "interrupt")


def pack(states: Sequence[State]) -> bytes:
    """The snapshot for the wire, at most ``LARGEST_SNAPSHOT`` bytes.

    A snapshot that is too large loses first the messages in the inboxes, then the counts of each
    peer (so that no message counts as received that was not), then the last processes.
    """
    for smaller in _ever_smaller(states):
        text = json.dumps(smaller, ensure_ascii=False, separators=(",", ":")).encode()
        if len(text) <= LARGEST_TEXT and len(packed := zlib.compress(text, 1)) <= LARGEST_SNAPSHOT:
            return packed
    return zlib.compress(b"[]")


def _ever_smaller(states: Sequence[State]) -> Iterator[Sequence[State]]:
    states = [{field: state[field] for field in FIELDS} for state in states]
    yield states
    for lines in (10, 1, 0):
        yield [state | {"summary": _first_lines(state["summary"], lines)} for state in states]
    count = len(states)
    while count:
        kept = states[:count]
        yield [state | {"summary": None, "peers": [("", 0, 0, 0, 0)]} for state in kept]
        count //= 2


def _first_lines(text: str | None, count: int) -> str | None:
    return text and "\n".join(text.split("\n")[:count])


def unpack(packed: bytes) -> list[State]:
    """The states of a snapshot; raises ValueError if it is invalid, without using much memory."""
    if len(packed) > LARGEST_SNAPSHOT:
        raise ValueError(f"a snapshot of {len(packed)} bytes, and {LARGEST_SNAPSHOT} are allowed")
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(packed, LARGEST_TEXT)
        if not unpacker.eof:
            raise ValueError(f"a snapshot that is cut, or larger than {LARGEST_TEXT} bytes")
        states = json.loads(text, parse_constant=_refuse)
    except (zlib.error, RecursionError) as error:
        raise ValueError(f"no snapshot: {error}") from None
    if not isinstance(states, list):
        raise ValueError("a snapshot is a list of states")
    for state in states:
        check(state)
    return states


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def pack_order(do: str, uid: str, call: int = 0, judgement: str = "") -> bytes:
    """An order for the wire.

    Args:
        do: a step to end the process's blocked call number ``call`` with ``judgement``, see
            ``observe.deadlocks.judge``; or "interrupt".
    """
    order = {"do": do, "uid": uid, "call": call, "judgement": judgement}
    return json.dumps(order, ensure_ascii=False).encode()


def unpack_order(packed: bytes) -> dict[str, Any]:
    """The order, with the arguments of ``pack_order``; raises ValueError if it is invalid."""
    order = json.loads(packed)
    types = {"do": str, "uid": str, "call": int, "judgement": str}
    if not isinstance(order, dict) or {name: type(value) for name, value in order.items()} != types:
        raise ValueError(f"an order has {', '.join(types)}")
    if order["do"] not in ORDERS:
        raise ValueError(f"an order is one of {', '.join(ORDERS)}")
    if not 0 <= order["call"] < 1 << 64:
        raise ValueError("a call has a number from 0")
    order["judgement"].encode()  # no halves of characters
    return order
