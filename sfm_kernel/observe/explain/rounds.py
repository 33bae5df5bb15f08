"""The calls that one process repeats, from the events in its trace.

Calls are told apart by their line, the peer, and what the message's event shows. At an observer's
request a process also notes a number that differs if its variables do (endpoint/variables.py);
programs in C, and extensions that call MPI, note none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfm_kernel._native import Observer
from sfm_kernel.observe.code_locations import code_location, words
from sfm_kernel.observe.explain.but_for import listed

LASTING = 2.0
"""Seconds for which all must have been the same."""

_LULL = 1.5
"""Seconds without a message after which a process does something else."""

_ROUNDS, _ANSWERS, OVERTAKING = 3, 3, 10
"""How often each call was made, how often the variables were read, and how many later messages were
received while an earlier one was not: at least."""

_CALLS, _STATES, SHOWN = 40, 6, 4
"""Calls that one round may have, different values of its variables, and calls that a sentence
shows."""

_TELLS, _ENDLESS = 1 << 63, 1
"""Bits of the number of the variables: somebody can tell; no return ends the loop."""

_INTERNAL = 1 << 15
"""The bit of a context's mark that says that no receive of the program takes its messages: their
tags are the numbers of collective calls. Engines' communicators may have it, too."""

_Call = tuple[str, str, int, int, int, int, tuple[tuple[str, str], ...]]
"""What a message's event has in common with those of other rounds: "sent" or "received", the peer,
code, line, context, bytes, attributes."""


class Rounds:
    """The calls that one process repeats.

    Attributes:
        endless: no return ends the loop that it is in.
        count: the messages that it has received at the same lines.
    """

    def __init__(self) -> None:
        self._calls: Counter[_Call] = Counter()
        self._codes: dict[int, str] = {}
        self._first: dict[_Call, float] = {}
        self._last: dict[_Call, float] = {}
        self.endless = False
        self._lines: set[tuple[str, int, int]] = set()
        self._variables: set[tuple[int, int, int]] = set()
        self._answers = self._position = self._received = 0
        self._looks = self._repeats = 0
        self.count = 0
        self._same = self._same_lines = 0.0  # since when; seconds since 1970

    def read(self, observer: Observer, path: str, process: Mapping[str, Any], time: float) -> None:
        """Compare what the process has done since the last look."""
        self._looks += 1
        events, self._position, codes = observer.trace(path, self._position)
        lines = self.add(events, dict(codes), time)
        if not lines <= self._lines or time - self._latest > _LULL:
            self._same_lines, self._received = time, process["received"]
        self._lines = lines if len(self._lines) > _CALLS else self._lines | lines
        self.count = process["received"] - self._received

    def add(
        self, events: Iterable[Any], codes: Mapping[int, str], time: float
    ) -> set[tuple[str, int, int]]:
        """Count the calls of these events, and return their lines."""
        self._codes.update(codes)
        if len(self._calls) > _CALLS:
            self._calls, self._first, self._last = Counter(), {}, {}
        lines = set()
        for event in events:
            if event[2] == "variables":
                self._compare((event[6], event[7], event[4]), time)
            elif event[2] in ("sent", "received") and event[6]:  # not by the network thread
                call = _call_of(event)
                if call not in self._first:
                    self._first[call] = event[1]
                    self._same, self._answers = max(self._same, event[1]), 0
                self._last[call] = event[1]
                self._calls[call] += 1
                lines.add((event[2], *call[2:4]))
        for call in [call for call, last in self._last.items() if time - last > LASTING]:
            del self._calls[call], self._first[call], self._last[call]  # it came before the rounds
        return lines

    def _compare(self, answer: tuple[int, int, int], time: float) -> None:
        """Compare an answer: the code, the line, and the number of the variables there."""
        tells = bool(answer[2] & _TELLS)
        if not tells or answer not in self._variables:
            self._answers, self._same = 0, time
            self._variables = self._variables if len(self._variables) < _STATES else set()
            self._variables.add(answer)
        else:
            self._repeats += 1
        self._answers += tells
        self.endless = tells and bool(answer[2] & _ENDLESS)

    def sent(self) -> set[tuple[tuple[str, str], ...]]:
        """The attributes of the messages that it has sent, as far as the trace shows them."""
        shown = (call for call in self._calls if call[0] == "sent")
        return {tuple(pair for pair in call[6] if pair[1] != "…") for call in shown}

    @property
    def _latest(self) -> float:
        return max(self._last.values(), default=0.0)

    def go_on(self, time: float) -> bool:
        """Whether the process makes its latest calls in turns, again and again."""
        if min(self._calls.values(), default=0) < _ROUNDS or time - self._latest > _LULL:
            return False
        return min(self._last.values()) > max(self._first.values())

    def may_be_same(self, time: float) -> bool:
        """Whether more looks may show that nothing changes: all the variables' values were new."""
        return self.go_on(time) and (self._repeats > 0 or self._looks <= _ANSWERS)

    def seconds(self, time: float) -> float:
        """Since when all has been the same: calls, messages and variables; 0 if there is doubt."""
        enough = self._answers >= _ANSWERS and min(self._calls.values(), default=0) >= _ROUNDS
        return time - self._same if enough and time - self._latest <= _LULL else 0.0

    def overtakes(self, time: float) -> bool:
        """Whether it does nothing but receive other messages."""
        lasted = time - self._same_lines if self.endless else self.seconds(time)
        return lasted >= LASTING and self.count >= OVERTAKING and self._answers > 0

    def text(self, names: Mapping[str, Any]) -> str:
        """The calls in words; ``names``: of processes by the last digits of their uids."""
        texts: dict[tuple[int, int, str, str], set[str]] = {}
        for what, peer, code, line, _, _, attributes in self._calls:
            texts.setdefault((code, line, what, peer), set()).add(attributes_text(attributes))
        calls = sorted(texts.items())
        shown = [self._shown(call, names, found) for call, found in calls]
        return f"{listed(shown, SHOWN, 'other calls')}, again and again"

    def _shown(
        self, call: tuple[int, int, str, str], names: Mapping[str, Any], about: set[str]
    ) -> str:
        code, line, what, peer = call
        other, location = names.get(peer, "?"), words(code_location(self._codes.get(code), line))
        at_line = f" in {location}" if location else ""
        if what == "received":
            return f"receives from {other}{at_line}"
        said = about.pop() if len(about) == 1 else ""
        return f"sends {f'({said}) ' if said else ''}to {other}{at_line}"


def _call_of(event: Any) -> _Call:
    _, _, what, peer, _, nbytes, code, line, attributes, context = event
    about = () if context & _INTERNAL else tuple(map(tuple, attributes))
    return what, peer, code, line, context, nbytes, about


def attributes_text(pairs: Iterable[Sequence[str]]) -> str:
    """The attributes of a message that tell something, in words."""
    shown = [f"{name}={value}" for name, value in pairs if name not in _ENDS]
    return ", ".join(shown[:SHOWN])


_ENDS = ("src", "dest")
