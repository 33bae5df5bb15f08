"""What processes did in a storm, and whether that is what is promised to them.

An event of a process is ``[time, what, peer, ...]``, times as of ``time.monotonic``:

    told PEER N          the send of its message N to this peer, from 0 on, has raised an error
    got PEER N           a message of this peer was received
    lost PEER WHY        an error has said that this peer is gone
    ends PEER N          the peer has said that N sends to this process have been made

The last event of a process that has come to its end is ``done``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Event = list[Any]
Pair = tuple[str, str]


def violations(events: Mapping[str, Iterable[Event]], killed: Mapping[str, float]) -> list[str]:
    """Broken promises, a sentence each.

    Args:
        events: of each process, by its name, in their order.
        killed: when processes were killed.
    """
    history = _History(events)
    found = history.false_deaths(killed)
    for name in events:
        if name not in killed and name not in history.done:
            found.append(f"{name} has not come to its end")
    for pair in sorted({*history.got, *history.ends}):
        found += history.of_pair(pair, killed)
    return found


class _History:
    """The events, by pairs of a sender and a receiver."""

    def __init__(self, events: Mapping[str, Iterable[Event]]) -> None:
        self.told: dict[Pair, set[int]] = defaultdict(set)
        self.got: dict[Pair, list[int]] = defaultdict(list)
        self.ends: dict[Pair, int] = {}
        self.lost: list[tuple[float, str, str, str]] = []
        self.done: set[str] = set()
        for name, each in events.items():
            for event in each:
                self._take(name, *event)

    def _take(self, name: str, at: float, what: str, peer: str = "", *more: Any) -> None:
        if what == "told":
            self.told[name, peer].add(more[0])
        elif what == "got":
            self.got[peer, name].append(more[0])
        elif what == "ends":
            self.ends[peer, name] = more[0]
        elif what == "lost":
            self.lost.append((at, name, peer, more[0]))
        else:
            assert what == "done", what
            self.done.add(name)

    def false_deaths(self, killed: Mapping[str, float]) -> list[str]:
        return [
            f"{name} was told at {at:.3f} that {peer} is gone, which "
            + (f"was killed at {killed[peer]:.3f}" if peer in killed else "lives")
            + f": {why}"
            for at, name, peer, why in self.lost
            if peer not in killed or at < killed[peer]
        ]

    def of_pair(self, pair: Pair, killed: Mapping[str, float]) -> list[str]:
        sender, receiver = pair
        what = f"from {sender} to {receiver}:"
        got, told = self.got[pair], self.told[pair]
        found = []
        if len(set(got)) < len(got):
            found.append(f"{what} {sorted({n for n in got if got.count(n) > 1})} came twice")
        if got != sorted(got):
            found.append(f"{what} {got} is not the order in which they were sent")
        # A process that was killed takes along what it had sent last.
        due = self.ends.get(pair, 0) if killed.keys().isdisjoint(pair) else 0
        due = max([due, *(n + 1 for n in got)])
        missing = sorted(set(range(due)) - set(got) - told)
        if missing:
            found.append(f"{what} {missing} did not come, and the sender was not told")
        return found
