"""Sparse: everybody talks with those whom it names, such as its neighbours in a grid.

Only members that name each other wait for each other: a value takes one message, and the depth is
the most values that go from one member to the same other one.

A member may have several values for the same one. They go in turns, of which each has one value for
each pair: a send waits where too much was not received, and in its turn everybody receives all that
was sent in the turn before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from sfm_kernel.collectives.call import Call


def exchange(call: Call, values: Sequence[tuple[int, Any]], sources: Sequence[int]) -> list[Any]:
    received: list[Any] = [None] * len(sources)
    sends, receives = _turns([place for place, _ in values]), _turns(sources)
    for sending, receiving in zip_longest(sends, receives, fillvalue=()):
        for nth in sending:
            call.send(*values[nth])
        for nth in receiving:
            received[nth] = call.recv(sources[nth])
    return received


def _turns(places: Sequence[int]) -> list[list[int]]:
    """The indices of what concerns each place for the first time, for the second time, …"""
    turns: list[list[int]] = []
    seen: dict[int, int] = {}
    for nth, place in enumerate(places):
        turn = seen[place] = seen.get(place, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(nth)
    return turns
