"""Worlds in which messages flow, and nothing changes: a livelock, or a process that starves.

This is never more than a doubt. A livelock is suspected if for seconds every process that acts has
made the same calls at the same lines, with the same messages, and its variables had the same values
each time, or one of a few. A program that counts its rounds is none. Nor is one that has no way out
of its loops: it is meant to serve for ever. A process starves if its message lies in the inbox of
one that receives others all the time, and has no way out of that or does nothing new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sfm_kernel._native import Observer
from sfm_kernel.observe.code_locations import code_location, words
from sfm_kernel.observe.explain.but_for import listed
from sfm_kernel.observe.explain.graph import Graph, Node
from sfm_kernel.observe.snapshot import segments

LASTING = 2.0
"""Seconds for which all must have been the same."""

_LULL = 1.5
"""Seconds without a message after which a process does something else."""

_ROUNDS, _ANSWERS, _OVERTAKING = 3, 3, 10
"""How often each call was made, how often the variables were read, and how many later messages were
received while an earlier one was not: at least."""

_CALLS, _STATES, _SHOWN = 40, 6, 4
"""Calls that one round may have, different values of its variables, and calls that a sentence
shows."""

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
        self.calls: Counter[_Call] = Counter()
        self.codes: dict[int, str] = {}
        self._seen: dict[_Call, float] = {}
        self.endless = False
        self._lines: set[tuple[str, int, int]] = set()
        self._variables: set[tuple[int, int, int]] = set()
        self._answers = self._position = self._received = 0
        self.count = 0
        self._same = self._same_lines = self._latest = 0.0  # since when; seconds since 1970

    def read(self, observer: Observer, path: str, process: Mapping[str, Any], time: float) -> None:
        """Compare what the process has done since the last look."""
        events, self._position, codes = observer.trace(path, self._position)
        self.codes.update(codes)
        for event in events:
            if event[2] == "variables":
                self._compare((event[6], event[7], event[4]), time)
        calls = [_call_of(event) for event in events if event[2] in ("sent", "received")]
        if calls:
            self._latest = time
        if len(self.calls) > _CALLS:
            self.calls, self._seen = Counter(), {}
        if not self.calls.keys() >= set(calls):
            self._same = time
        self.calls.update(calls)
        self._seen.update(dict.fromkeys(calls, time))
        for call in [call for call in self.calls if time - self._seen[call] > LASTING]:
            del self.calls[call], self._seen[call]  # it came before the rounds
        lines = {(what, code, line) for what, _, code, line, *_ in calls}
        if not lines <= self._lines or time - self._latest > _LULL:
            self._same_lines, self._received = time, process["received"]
        self._lines = lines if len(self._lines) > _CALLS else self._lines | lines
        self.count = process["received"] - self._received

    def _compare(self, answer: tuple[int, int, int], time: float) -> None:
        """Compare an answer: the code, the line, and the number of the variables there."""
        if answer not in self._variables:
            self._answers, self._same = 0, time
            self._variables = self._variables if len(self._variables) < _STATES else set()
            self._variables.add(answer)
        self._answers += 1
        self.endless = bool(answer[2] & 1)

    def seconds(self, time: float) -> float:
        """Since when all has been the same: calls, messages and variables; 0 if there is doubt."""
        enough = self._answers >= _ANSWERS and min(self.calls.values(), default=0) >= _ROUNDS
        return time - self._same if enough and time - self._latest <= _LULL else 0.0

    def overtakes(self, time: float) -> bool:
        """Whether it does nothing but receive other messages."""
        lasted = time - self._same_lines if self.endless else self.seconds(time)
        return lasted >= LASTING and self.count >= _OVERTAKING and self._answers > 0


class Doubt(NamedTuple):
    """``repeating``: the processes of a livelock, by uid; ``starving``: each process that starves,
    and the one that has its message."""

    repeating: dict[str, Rounds]
    starving: list[tuple[Node, Node]]


class Repetition:
    """Looks at a world repeatedly, and remembers what its processes repeat."""

    def __init__(self, folder: str) -> None:
        self._folder, self._observer = folder, Observer()
        self._rounds: dict[str, Rounds] = {}

    @property
    def is_suspected(self) -> bool:
        """Whether some process has done the same for a while."""
        return any(min(rounds.calls.values(), default=0) > 1 for rounds in self._rounds.values())

    def look(self, graph: Graph) -> Doubt | None:
        """What is suspected now, at the moment of this graph; call it once a second or oftener."""
        paths, time = segments(self._folder), graph.time
        acting = [node for node in graph.nodes.values() if not _rests(node, time)]
        here = {node.uid: node for node in acting if node.uid in paths}
        self._rounds = {uid: self._rounds.get(uid) or Rounds() for uid in here}
        for uid, rounds in self._rounds.items():
            rounds.read(self._observer, paths[uid], here[uid].process, time)
        starving = list(self._starving(graph))
        is_same = all(rounds.seconds(time) >= LASTING for rounds in self._rounds.values())
        has_end = not all(rounds.endless for rounds in self._rounds.values())
        if here and len(here) == len(acting) and is_same and (starving or has_end):
            return Doubt(self._rounds, starving)
        return Doubt({}, starving) if starving else None

    def _starving(self, graph: Graph) -> Iterator[tuple[Node, Node]]:
        for node in graph.nodes.values():
            if node.kind != "recv" or not _rests(node, graph.time):
                continue
            for uid in sorted(node.needs & self._rounds.keys()):
                keeper = graph.nodes[uid]
                if _left(node, keeper) and self._rounds[uid].overtakes(graph.time):
                    yield node, keeper

    def told(self, doubt: Doubt, graph: Graph, diagnosis: dict[str, Any]) -> dict[str, Any]:
        """The diagnosis with the doubt."""
        keepers = {keeper.uid for _, keeper in doubt.starving}
        texts = {
            uid: _sentence(graph.nodes[uid], rounds, graph)
            for uid, rounds in self._rounds.items()
            if uid in doubt.repeating or uid in keepers
        }
        for node, keeper in doubt.starving:
            text = _lies(node, keeper, self._rounds[keeper.uid])
            texts[node.uid] = f"{_text_of(node, diagnosis)} {text}"
        processes = diagnosis["processes"]
        told = {one["text"]: texts.get(one["uid"], one["text"]) for one in processes}
        repeating = [graph.nodes[uid].name for uid in doubt.repeating]
        return {
            **diagnosis,
            "verdict": "running",
            "title": _title(doubt, repeating),
            "sentences": [
                *(told.get(text, text) for text in diagnosis["sentences"]),
                *_summary(repeating),
            ],
            "processes": [{**one, "text": told[one["text"]]} for one in processes],
        }


def _title(doubt: Doubt, repeating: list[Any]) -> str:
    if doubt.starving:
        node, keeper = doubt.starving[0]
        return f"Perhaps {node.name} starves: {keeper.name} receives other messages all the time"
    verb = "repeats" if len(repeating) == 1 else "repeat"
    return f"Perhaps a livelock: {listed(repeating, _SHOWN, 'more')} {verb} the same for ever"


def _summary(repeating: list[Any]) -> Iterator[str]:
    if repeating:
        verb = "goes" if len(repeating) == 1 else "go"
        who = listed(repeating, _SHOWN, "more")
        yield f"If no message and no variable ever changes, {who} {verb} on like this for ever."


def _text_of(node: Node, diagnosis: dict[str, Any]) -> str:
    return str(next(one["text"] for one in diagnosis["processes"] if one["uid"] == node.uid))


def _call_of(event: Any) -> _Call:
    _, _, what, peer, _, nbytes, code, line, attributes, context = event
    return what, peer, code, line, context, nbytes, tuple(map(tuple, attributes))


def _rests(node: Node, time: float) -> bool:
    """Whether a process has done nothing for a while, and does nothing now."""
    process = node.process
    if process["polls"]:
        return bool(time - process["polls"]["since"] >= LASTING)
    if process["state"] == "idle" or node.kind == "cell":
        return True
    blocked = process["state"].startswith("blocked") and not process["others"]
    lasts = time - process["since"] >= LASTING
    return bool(blocked and lasts and process["wait"] and not process["wait"]["until"])


def _left(node: Node, keeper: Node) -> list[Mapping[str, Any]]:
    """The messages of one process that another one has not received."""
    messages = keeper.process["messages"]
    return [found for found in messages if found["src"] == node.name and not found["context_id"]]


def _lies(node: Node, keeper: Node, rounds: Rounds) -> str:
    (message, *_) = _left(node, keeper)
    shown = _attributes(message["attributes"])
    return (
        f"Its message{f' ({shown})' if shown else ''} lies in {keeper.name}'s inbox, and "
        f"{keeper.name} has received {rounds.count} others meanwhile."
    )


def _attributes(pairs: Iterable[Sequence[str]]) -> str:
    shown = [f"{name}={value}" for name, value in pairs if name not in _ENDS]
    return ", ".join(shown[:_SHOWN])


_ENDS = ("src", "dest")


def _sentence(node: Node, rounds: Rounds, graph: Graph) -> str:
    """What a process repeats."""
    names = {process["uid"][16:]: process["name"] for process in graph.processes}
    texts: dict[tuple[int, int, str, str], set[str]] = {}
    for what, peer, code, line, _, _, attributes in rounds.calls:
        texts.setdefault((code, line, what, peer), set()).add(_attributes(attributes))
    shown = [
        _shown(call, names, rounds.codes, shown.pop() if len(shown) == 1 else "")
        for call, shown in sorted(texts.items())
    ]
    seconds = rounds.seconds(graph.time)
    same = f", for {seconds:.0f} s without a new value" if seconds else ""
    return f"{node.name} {listed(shown, _SHOWN, 'other calls')}, again and again{same}."


def _shown(
    call: tuple[int, int, str, str], names: Mapping[str, Any], codes: Mapping[int, str], about: str
) -> str:
    code, line, what, peer = call
    other, location = names.get(peer, "?"), words(code_location(codes.get(code), line))
    at_line = f" in {location}" if location else ""
    if what == "received":
        return f"receives from {other}{at_line}"
    return f"sends {f'({about}) ' if about else ''}to {other}{at_line}"
