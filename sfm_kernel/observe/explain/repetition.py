"""Worlds in which messages flow, and nothing changes: a livelock, or a process that starves.

This is never more than a doubt. A livelock is suspected if for seconds every process that acts has
made the same calls at the same lines, with the same messages, and its variables had the same values
each time, or one of a few. A program that counts its rounds is none. Nor is one that has no way out
of its loops, if it receives all that it is sent and nobody waits for it: it is meant to serve for
ever. A process starves if its message lies in the inbox of one that receives others all the time,
and has no way out of that or does nothing new.

Nobody reads the variables of programs in C: it is only told what they repeat, to those who ask.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from sfm_kernel._native import LIBRARY, Observer
from sfm_kernel.observe.explain.but_for import listed
from sfm_kernel.observe.explain.graph import Graph, Node
from sfm_kernel.observe.explain.rounds import LASTING, OVERTAKING, SHOWN, Rounds, attributes_text
from sfm_kernel.observe.explain.taken import Traces
from sfm_kernel.observe.explain.words import of_processes
from sfm_kernel.observe.snapshot import segments

_PAUSE, _LONGER = 0.15, 1.0
"""Seconds between two looks for a user who asks, and for which they go on after ``LASTING``."""


class Doubt(NamedTuple):
    """``repeating``: the processes of a livelock, by uid; ``starving``: each process that starves,
    the one that has its message, and that message."""

    repeating: dict[str, Rounds]
    starving: list[tuple[Node, Node, Message]]


Message = Mapping[str, Any]


class Repetition:
    """Looks at a world repeatedly, and remembers what its processes repeat.

    Attributes:
        is_suspected: by the last look, some process makes the same calls again and again.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._observer = folder, Observer()
        self._known: dict[str, Rounds] = {}  # of all that act, or poll
        self._rounds: dict[str, Rounds] = {}  # of those that act: one that polls may send, too
        self.is_suspected = False

    def watch(self, graph: Graph, look: Callable[[], Graph]) -> tuple[Doubt | None, Graph]:
        """What is suspected after some seconds; at once if it is known that something changes.

        ``look`` gives a new graph; the last one is returned, too.
        """
        end = graph.time + LASTING + _LONGER
        while True:
            doubt, rounds = self.look(graph), self._rounds.values()
            is_over = not rounds or not all(one.may_be_same(graph.time) for one in rounds)
            if doubt is not None or is_over or graph.time > end:
                return doubt, graph
            time.sleep(_PAUSE)
            graph = look()

    def look(self, graph: Graph) -> Doubt | None:
        """What is suspected now, at the moment of this graph; call it once a second or oftener."""
        paths, now = segments(self._folder), graph.time
        acting = [node for node in graph.nodes.values() if not _rests(node, graph)]
        polling = [node for node in graph.nodes.values() if node.process["polls"]]
        seen = {node.uid: node for node in (*acting, *polling) if node.uid in paths}
        self._known = {uid: self._known.get(uid) or Rounds() for uid in seen}
        for uid, rounds in self._known.items():
            rounds.read(self._observer, paths[uid], seen[uid].process, now)
        resting = {node.uid for node in polling} - {node.uid for node in acting}
        resting = {uid for uid in resting & seen.keys() if not self._known[uid].go_on(now)}
        order = [uid for uid in graph.nodes if uid in seen and uid not in resting]
        self._rounds = {uid: self._known[uid] for uid in order}
        starving = list(self._starving(graph))
        self.is_suspected = any(rounds.go_on(now) for rounds in self._rounds.values())
        is_same = all(rounds.seconds(now) >= LASTING for rounds in self._rounds.values())
        has_end = not all(rounds.endless for rounds in self._rounds.values())
        fails = starving or has_end or any(self._never_received(uid, graph) for uid in order)
        fails = fails or any(keeper.uid in self._rounds for _, keeper in _waiting(graph))
        is_complete = all(node.uid in seen for node in acting)
        if order and is_complete and is_same and fails:
            return Doubt(self._rounds, starving)
        return Doubt({}, starving) if starving else None

    def _starving(self, graph: Graph) -> Iterator[tuple[Node, Node, Message]]:
        for node, keeper in _waiting(graph):
            rounds = self._rounds.get(keeper.uid)
            if rounds is None or not rounds.overtakes(graph.time):
                continue
            if (message := _left(node, keeper, graph, Traces(self._folder))) is not None:
                yield node, keeper, message

    def _never_received(self, uid: str, graph: Graph) -> str:
        """The sentence on messages in an inbox that are none of those that flow again and again."""
        flows = {
            (graph.nodes[sender].name, about)
            for sender, rounds in self._rounds.items()
            for about in rounds.sent()
        }
        senders = {name for name, _ in flows}
        found = []
        for message in graph.nodes[uid].process["messages"]:
            has = {tuple(pair) for pair in message["attributes"]}
            flowing = any(name == message["src"] and has >= set(about) for name, about in flows)
            if not (message["context_id"] or flowing):
                text = attributes_text(message["attributes"])
                of = f" from {message['src']}" if message["src"] not in senders else ""
                found.append(f"({text}){of}" if text else f"one{of}")
        if not found:
            return ""
        verb = "message lies" if len(found) == 1 else "messages lie"
        shown = listed(dict.fromkeys(found), SHOWN, "more")
        return f" {len(found)} other {verb} unreceived in its inbox: {shown}."

    def _sentence(self, node: Node, rounds: Rounds, graph: Graph, diagnosis: dict[str, Any]) -> str:
        """What a process repeats, and what it does not receive; of one that polls, that as well."""
        seconds = rounds.seconds(graph.time)
        same = f", for {seconds:.0f} s without a new value" if seconds else ""
        repeats = f"{rounds.text(_names(graph))}{same}."
        if node.process["polls"]:
            return f"{_text_of(node, diagnosis)} It {repeats}"
        return f"{node.name} {repeats}{self._never_received(node.uid, graph)}"

    def told(self, doubt: Doubt, graph: Graph, diagnosis: dict[str, Any]) -> dict[str, Any]:
        """The diagnosis with the doubt."""
        keepers = {keeper.uid for _, keeper, _ in doubt.starving}
        texts = {
            uid: self._sentence(graph.nodes[uid], rounds, graph, diagnosis)
            for uid, rounds in self._rounds.items()
            if uid in doubt.repeating or uid in keepers
        }
        for node, keeper, message in doubt.starving:
            text = _lies(message, keeper, f"{self._rounds[keeper.uid].count}")
            texts[node.uid] = f"{_text_of(node, diagnosis)} {text}"
        before = diagnosis["processes"]
        processes = [{**one, "text": texts.get(one["uid"], one["text"])} for one in before]
        rest = diagnosis["sentences"][len(of_processes(before, graph)) :]
        repeating = [graph.nodes[uid].name for uid in doubt.repeating]
        return {
            **diagnosis,
            "verdict": "running",
            "title": _title(doubt, repeating),
            "sentences": [*of_processes(processes, graph), *rest, *_summary(repeating)],
            "processes": processes,
        }


def repeated(node: Node, graph: Graph, traces: Traces) -> str:
    """A sentence on what a process that acts has done again and again; "" if there is none."""
    if not node.process["here"] or _rests(node, graph):
        return ""
    rounds = Rounds()
    rounds.add(*traces.of(node.uid), graph.time)
    return f" It {rounds.text(_names(graph))}." if rounds.go_on(graph.time) else ""


def overtaken(node: Node, graph: Graph, traces: Traces) -> str:
    """A sentence on a message that lies unreceived while others are received; "" without one."""
    for waiting, keeper in _waiting(graph):
        if waiting is node:
            events, _ = traces.of(keeper.uid)
            since = node.process["since"]
            later = sum(event[2] == "received" and event[1] >= since for event in events)
            message = _left(node, keeper, graph, traces) if later >= OVERTAKING else None
            if message is not None:
                is_cut = events[0][0] > 0 and events[0][1] > since
                return f" {_lies(message, keeper, f'at least {later}' if is_cut else f'{later}')}"
    return ""


def _title(doubt: Doubt, repeating: list[Any]) -> str:
    if doubt.starving:
        node, keeper, _ = doubt.starving[0]
        return f"Perhaps {node.name} starves: {keeper.name} receives other messages all the time"
    verb = "repeats" if len(repeating) == 1 else "repeat"
    return f"Perhaps a livelock: {listed(repeating, SHOWN, 'more')} {verb} the same for ever"


def _summary(repeating: list[Any]) -> Iterator[str]:
    if repeating:
        verb = "goes" if len(repeating) == 1 else "go"
        who = listed(repeating, SHOWN, "more")
        yield f"If no message and no variable ever changes, {who} {verb} on like this for ever."


def _text_of(node: Node, diagnosis: dict[str, Any]) -> str:
    return str(next(one["text"] for one in diagnosis["processes"] if one["uid"] == node.uid))


def _rests(node: Node, graph: Graph) -> bool:
    """Whether a process has done nothing for a while, and does nothing now."""
    process = node.process
    if process["polls"]:
        return bool(graph.time - process["polls"]["since"] >= LASTING)
    if process["state"] == "idle" or node.kind == "cell" or graph.is_asker(node):
        return True
    return _waits(node, graph)


def _waits(node: Node, graph: Graph) -> bool:
    process = node.process
    blocked = process["state"].startswith("blocked") and not process["others"]
    lasts = graph.time - process["since"] >= LASTING
    return bool(blocked and lasts and process["wait"] and not process["wait"]["until"])


def _waiting(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """The processes that have waited for a while, each with those that could make it go on."""
    for node in graph.nodes.values():
        if node.kind in ("recv", "send") and _waits(node, graph):
            for uid in sorted(node.needs & graph.nodes.keys()):
                yield node, graph.nodes[uid]


def _left(node: Node, keeper: Node, graph: Graph, traces: Traces) -> Message | None:
    """A message of one process that another one has not received; None if there is none.

    Ranks of MPI are named by their communicators; but the process has sent the message.
    """
    messages: list[Message] = keeper.process["messages"]
    for message in messages:
        if not message["context_id"] and message["src"] == node.name:
            return message
    if not graph.has_earlier(node, keeper):
        return None
    sent = [event for event in traces.of(node.uid)[0] if event[2:4] == ("sent", keeper.uid[16:])]
    shown = {(event[9], tuple(map(tuple, event[8]))) for event in sent}
    for message in messages:
        context, has = int(message["context_id"] or "0", 16), map(tuple, message["attributes"])
        about = tuple(pair for pair in has if pair[0] not in ("src", "data"))
        if context and not context & LIBRARY and (context >> 48, about) in shown:
            return {**message, "attributes": about}
    return None


def _lies(message: Message, keeper: Node, others: str) -> str:
    shown = attributes_text(message["attributes"])
    return (
        f"Its message{f' ({shown})' if shown else ''} lies in {keeper.name}'s inbox, and "
        f"{keeper.name} has received {others} others meanwhile."
    )


def _names(graph: Graph) -> dict[str, Any]:
    return {process["uid"][16:]: process["name"] for process in graph.processes}
