"""Patterns of communication between many processes, the same for SFM and MPI."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

WORK = {"step": 7, "data": bytes(128)}
"""The attributes of every message, in addition to its tag."""


class Talk(NamedTuple):
    """One process's calls for a pattern, without arguments, as a program makes them."""

    rank: int
    size: int
    to_root: Callable[[], object]
    from_any: Callable[[], Any]
    """On rank 0: receive the next message from any other rank."""
    answers: Sequence[Callable[[], object]]
    """On rank 0: send to rank 1, 2, …"""
    from_root: Callable[[], Any]
    opened: Callable[[Any], object]
    """Reads every value of a received message."""


def round_trips(talk: Talk, count: int) -> float:
    """``count`` times: every rank sends to rank 0, and goes on when rank 0 has answered.

    As in a barrier, rank 0 answers when it has heard from all. A round has 2·(size - 1) messages.
    Returns seconds per message; 0 on other ranks.
    """
    if talk.rank != 0:
        for _ in range(count):
            talk.to_root()
            talk.opened(talk.from_root())
        return 0.0
    started = time.perf_counter()
    for _ in range(count):
        for _ in talk.answers:
            talk.opened(talk.from_any())
        for answer in talk.answers:
            answer()
    return (time.perf_counter() - started) / (2 * count * (talk.size - 1))


def many_to_one(talk: Talk, count: int) -> float:
    """Every rank sends ``count`` messages to rank 0, which receives them as they come.

    Returns seconds per message, from rank 0's signal to begin until it has all; 0 on other ranks.
    """
    if talk.rank != 0:
        talk.from_root()
        for _ in range(count):
            talk.to_root()
        return 0.0
    started = time.perf_counter()
    for answer in talk.answers:
        answer()
    for _ in range(count * (talk.size - 1)):
        talk.opened(talk.from_any())
    return (time.perf_counter() - started) / (count * (talk.size - 1))


PATTERNS: dict[str, Callable[[Talk, int], float]] = {
    "round trips": round_trips,
    "many to one": many_to_one,
}
