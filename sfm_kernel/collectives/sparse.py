"""Sparse: each member talks only with the members that it names, such as neighbours in a grid.

Only members that name each other wait for each other. Each value takes one message; the depth is
the largest number of values from one member to the same other one.

Several values from one member to another are sent in turns, one value for each pair in a turn: a
send waits while too many messages are not received, and in each turn every member receives what
was sent in the turn before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from sfm_kernel.collectives.call import Call


def exchange(call: Call, values: Sequence[tuple[int, Any]], sources: Sequence[int]) -> list[Any]:
    received: list[Any] = [None] * len(sources)
    sends, receives = _turns([dest for dest, _ in values]), _turns(sources)
    for sending, receiving in zip_longest(sends, receives, fillvalue=()):
        for index in sending:
            call.send(*values[index])
        for index in receiving:
            received[index] = call.recv(sources[index])
    return received


def _turns(ranks: Sequence[int]) -> list[list[int]]:
    """The indices at which each rank occurs for the first time, for the second time, …"""
    turns: list[list[int]] = []
    seen: dict[int, int] = {}
    for index, rank in enumerate(ranks):
        turn = seen[rank] = seen.get(rank, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(index)
    return turns
