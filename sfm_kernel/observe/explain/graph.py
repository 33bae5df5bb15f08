"""The wait-for graph, and the processes that can never go on.

A blocked process waits for others: a receive for any process that could send to it, a collective
call for all members that have not arrived. A process that computes, or waits only for a time, can
act by itself. Processes that cannot act, and that no process which can act could wake, are
*stuck*: the greatest set of processes that have only each other to wait for. Sources: Holt, "Some
Deadlock Properties of Computer Systems" (1972), for waits for any of several (the knot); Chandy,
Misra and Haas, "Distributed Deadlock Detection" (1983), for messages; Mattern, "Algorithms for
Distributed Termination Detection" (1987), for reading all counters twice: a process that is in the
same blocked call in both readings was in it in between, when all the others were in theirs.

In doubt a process can act: if anything about it is uncertain, it is not stuck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sfm_kernel.observe.explain.alone import alone, runs_callback
from sfm_kernel.observe.explain.but_for import doubt, running
from sfm_kernel.observe.snapshot import SHARED

YOUNG = 0.3
"""Seconds in which a wait's published facts may be missing or out of date: a blocked call
publishes them every 0.1 s."""

Name = Any
Process = Mapping[str, Any]


@dataclass
class Node:
    """A living process, and what it waits for.

    Attributes:
        acts: why it can go on by itself; "" if it cannot.
        needs: the uids of the processes that could make it go on.
        every: all of them are needed.
        absent: names that it waits for, but no process has.
        young: its wait has only begun, so nothing is known yet.
        newcomer: whether only one who joins a world that has all its ranks could make it go on.
    """

    process: Process
    acts: str = ""
    needs: frozenset[str] = frozenset()
    every: bool = False
    absent: list[Name] = field(default_factory=list)
    young: bool = False
    newcomer: bool = False

    @property
    def uid(self) -> str:
        uid: str = self.process["uid"]
        return uid

    @property
    def name(self) -> Name:
        return self.process["name"]

    @property
    def kind(self) -> str:
        """The kind of its wait: "recv", "send", "collective", "cell", "join", "other"; "idle" for
        an engine."""
        if self.process["state"] == "idle":
            return "idle"
        return str((self.process["wait"] or {"kind": "other"})["kind"])

    @property
    def is_blocked(self) -> bool:
        """Whether it is in a call of its own that could be ended with an error."""
        return not self.acts and self.kind in ("recv", "send", "collective", "other")


class Graph:
    """The wait-for graph of a snapshot.

    Args:
        before: an earlier reading: for each uid the number of its latest blocked call, and its
            state.
        asker: the uid of the process whose user asks; that it runs means nothing.
        complete: assume that nobody joins any more.
    Attributes:
        stuck: the uids of the processes that can never go on.
    """

    def __init__(
        self,
        snapshot: Mapping[str, Any],
        before: Mapping[str, tuple[int, str]] | None = None,
        asker: str = "",
        complete: bool = False,
    ) -> None:
        self.time: float = snapshot["time"]
        self.processes: list[Process] = [_if_unseen(process) for process in snapshot["processes"]]
        self.links: list[Mapping[str, Any]] = snapshot.get("links", [])
        self._before, self._asker = before, asker
        self._snapshot, self._complete = snapshot, complete
        living = [process for process in self.processes if process["alive"]]
        self._by_name: dict[Name, list[Process]] = {}
        for process in living:
            self._by_name.setdefault(process["name"], []).append(process)
        for process in living:  # a name goes before a rank
            if process["rank"] not in self._by_name:
                self._by_name[process["rank"]] = [process]
        self._living = {process["uid"] for process in living}
        self._counts = {
            (process["uid"][16:], peer["uid"]): peer
            for process in self.processes
            for peer in process["peers"]
        }
        self._notebooks = [process for process in living if process["kind"] == "notebook"]
        # Engines whose answer a notebook awaits.
        self._awaited = {
            name
            for notebook in self._notebooks
            if notebook["wait"] is not None and notebook["wait"]["kind"] == "cell"
            for name in notebook["wait"]["peers"] or ()
        }
        self.nodes = {process["uid"]: self._node(process) for process in living}
        self.stuck = self._stuck(frozenset())

    # ---- what each process waits for ----

    def _node(self, process: Process) -> Node:
        if process["state"] == "idle":
            return self._idle(process)
        if process["state"] == "damaged":
            return Node(process, acts="its segment is damaged, so nobody can see what it does")
        if process["polls"]:
            return Node(process, acts="it polls")
        others = process["others"]
        if process["unseen"] is not None:
            return Node(process, acts="nobody sees what it does")
        if not process["state"].startswith("blocked"):
            return Node(process, acts=doubt(others) if others else "it computes")
        wait = process["wait"]
        if wait is None:
            return Node(process, acts="its wait has only begun", young=True)
        judge = self._notebook if wait["kind"] == "cell" else self._waiting
        node = judge(process, wait)
        if others and not node.acts:
            node.acts = doubt(others)
        return node

    def _waiting(self, process: Process, wait: Mapping[str, Any]) -> Node:
        """The node of a blocked call, whatever other threads the process has."""
        if wait["kind"] == "join":
            names, absent = ", ".join(map(repr, wait["peers"])), []
            if self.is_closed():
                names, absent = f"a newcomer named {names}", wait["peers"]
            return Node(process, acts=f"{names} may still join", absent=absent)
        if why := self._doubt(process, wait):
            young = self.time - process["since"] < YOUNG or not process["settled"]
            return Node(process, acts=why, young=young and not wait["until"])
        if wait["peers"] is None:
            return self._for_anybody(process)
        absent = [name for name in wait["peers"] if name not in self._by_name]
        found = (peer for name in wait["peers"] for peer in self._by_name.get(name, []))
        needs = frozenset(peer["uid"] for peer in found)
        node = Node(process, needs=needs, every=wait["all"], absent=absent)
        dead = [other["name"] for other in self.processes if not other["alive"]]
        if absent and not self.is_closed():
            node.acts = f"{', '.join(map(repr, absent))} may still join"
        elif wait["all"] and (absent or not needs):
            node.acts = "a member of the collective call has ended, or all have arrived"
        elif any(self._on_its_way(uid, process) for uid in self._senders(needs, absent)):
            node.acts = "a message is on its way"
        elif any(name in dead for name in absent):
            node.acts = f"it will learn that {', '.join(map(str, absent))} has ended"
        elif absent and self._is_open():
            node.acts, node.newcomer = f"{', '.join(map(repr, absent))} may still join", True
        return node

    def _idle(self, process: Process) -> Node:
        """An engine waits for a notebook's next cell; a program that has ended waits for nobody."""
        if process["kind"] == "process":
            return Node(process)
        if process["kind"] == "notebook" or not self._notebooks:
            return Node(process, acts="it is idle")
        if process["name"] in self._awaited:
            return Node(process, acts="its cell is about to begin, or has just ended")
        if not all(notebook["state"].startswith("blocked") for notebook in self._notebooks):
            return Node(process, acts="it is idle, and may be given a cell")
        return Node(process, needs=frozenset(notebook["uid"] for notebook in self._notebooks))

    def _notebook(self, process: Process, wait: Mapping[str, Any]) -> Node:
        engines = [peer for name in wait["peers"] or () for peer in self._by_name.get(name, [])]
        busy = frozenset(peer["uid"] for peer in engines if peer["state"] != "idle")
        if not busy:
            return Node(process, acts="its cell has just ended")
        return Node(process, needs=busy, every=True)

    def _doubt(self, process: Process, wait: Mapping[str, Any]) -> str:
        """Why its call may end whatever other processes do; "" if it cannot."""
        if wait["until"]:
            return "its wait ends by itself"
        if self.time - process["since"] < YOUNG:
            return "its wait has only begun"
        if not process["settled"]:
            why = "it has not examined all that has arrived"
            if runs_callback(process):
                return f"{why}, since {running(process['others'])} runs"
            return why
        now = process["call"], process["state"]
        if self._before is not None and self._before.get(process["uid"]) != now:
            return "it went on a moment ago"
        return ""

    def _for_anybody(self, process: Process) -> Node:
        others = {peer["uid"] for peer in self.processes} - {process["uid"]}
        node = Node(process, needs=frozenset(others & self._living))
        if any(self._on_its_way(uid, process) for uid in others):
            node.acts = "a message is on its way"
        elif not self.is_closed():
            node.acts = "somebody may still join"
        elif self._is_open():
            node.acts, node.newcomer = "a newcomer may still join", True
        return node

    def _is_open(self) -> bool:
        """Whether others know the world's name, and could join although it has all its ranks."""
        living = [process for process in self.processes if process["alive"]]
        if any(process["kind"] == "engine" for process in living):
            guests = (one for one in self.processes if one["rank"] is None)
            is_known = any(one["kind"] == "process" for one in guests)  # one has joined already
        else:
            is_known = any(one["rank"] is not None and not one["size"] for one in living)
        return is_known and not self._complete

    def is_closed(self) -> bool:
        """Whether no newcomer is expected: the world is a cluster, or has all its ranks."""
        if any(process["state"] == "damaged" for process in self.processes):
            return False  # its name and rank are unknown
        if any(process["kind"] == "engine" for process in self.processes):
            return True
        sizes = [process["size"] for process in self.processes if process["size"]]
        ranks = {process["rank"] for process in self.processes if process["rank"] is not None}
        return bool(sizes) and len(ranks) >= max(sizes)

    def _senders(self, needs: frozenset[str], absent: Sequence[Name]) -> list[str]:
        """The processes that may have a message on its way to a receiver: also dead ones."""
        others = (process for process in self.processes if process["name"] in absent)
        return [*needs, *(process["uid"] for process in others if not process["alive"])]

    def _on_its_way(self, sender: str, receiver: Process) -> bool:
        """Whether a message of the sender may not have arrived yet; also if that is unknown."""
        there, here = sender[16:], receiver["uid"][16:]
        if (there, SHARED) in self._counts or (here, SHARED) in self._counts:
            return True
        sent = self._counts.get((there, here), {"sent": 0})["sent"]
        arrived = self._counts.get((here, there), {"arrived": 0})["arrived"]
        # A process that was killed may not have counted its last message.
        return bool(sent > arrived or (sent < arrived and sender in self._living))

    # ---- stuck processes ----

    def _stuck(self, passive: frozenset[str]) -> frozenset[str]:
        """The greatest set of processes that cannot act and have only each other to wait for.

        ``passive``: uids of further processes that are assumed not to act.
        """
        stuck = {uid for uid, node in self.nodes.items() if not node.acts or uid in passive}
        while freed := {uid for uid in stuck if self._is_freed(self.nodes[uid], stuck)}:
            stuck -= freed
        # Engines without a cell, and notebooks that wait for cells, are not stuck by themselves.
        if not any(self.nodes[uid].is_blocked for uid in stuck):
            return frozenset()
        return frozenset(stuck)

    @staticmethod
    def _is_freed(node: Node, stuck: set[str]) -> bool:
        if node.every:
            return not node.needs & stuck
        return bool(node.needs - stuck)

    def blocked(self) -> list[Node]:
        """The stuck processes that are in a blocked call, by rank."""
        return [node for uid, node in self.nodes.items() if uid in self.stuck and node.is_blocked]

    def without_others(self) -> Graph:
        """The graph of the processes as ``alone`` describes them."""
        closed = self.is_closed()
        processes = [alone(process, closed) for process in self.processes]
        pairs = zip(processes, self.processes, strict=True)
        assumed = [now for now, process in pairs if now["wait"] is not process["wait"]]
        calls = {process["uid"]: (process["call"], process["state"]) for process in assumed}
        before = self._before and {**self._before, **calls}
        snapshot = {**self._snapshot, "processes": processes}
        return Graph(snapshot, before, self._asker, complete=True)

    def is_asker(self, node: Node) -> bool:
        """Whether the process only runs in order to ask."""
        return node.uid == self._asker and node.process["state"] == "running"

    def left_to_asker(self) -> list[Node]:
        """The blocked processes that go on only if the asker does something."""
        asker = self.nodes.get(self._asker)
        if asker is None or not self.is_asker(asker) or self.stuck:
            return []
        passive = {asker.uid}
        acting = [one for one in self._notebooks if not one["state"].startswith("blocked")]
        if [notebook["uid"] for notebook in acting] == [asker.uid]:  # no other one gives cells
            passive |= {node.uid for node in self.nodes.values() if self._is_free(node)}
        stuck = self._stuck(frozenset(passive))
        return [node for uid, node in self.nodes.items() if uid in stuck and node.is_blocked]

    def _is_free(self, node: Node) -> bool:
        is_idle = node.process["kind"] == "engine" and node.process["state"] == "idle"
        return is_idle and node.name not in self._awaited

    def has_earlier(self, sender: Node, receiver: Node) -> bool:
        """Whether the receiver has not received all that the sender has sent it."""
        there, here = sender.uid[16:], receiver.uid[16:]
        sent = self._counts.get((there, here), {"sent": 0})["sent"]
        received = self._counts.get((here, there), {"received": 0})["received"]
        return bool(sent > received)

    def is_for_anybody(self, node: Node) -> bool:
        """Whether a process waits for any sender; in a world of two there is only one choice."""
        wait = node.process["wait"]
        if wait is None or wait["peers"] is not None:
            return False
        others = [self.nodes[uid] for uid in node.needs if uid in self.nodes]
        return len(others) != 1 or others[0].kind == "idle"

    def _named(self, node: Node, among: Mapping[str, Node]) -> list[str]:
        """The uids among these that a process waits for by name."""
        return [] if self.is_for_anybody(node) else sorted(node.needs & among.keys())

    def waits_for(self, node: Node, others: Sequence[Node]) -> bool:
        """Whether a process waits for one of these, directly or through others."""
        edges = {uid: self._named(other, self.nodes) for uid, other in self.nodes.items()}
        return not _reachable(node.uid, edges).isdisjoint(other.uid for other in others)

    def cycle(self) -> list[Node]:
        """The stuck processes that wait for each other, in the order of the ring if it is one.

        Empty if they wait for no process that is in a call: for idle engines, or for any sender.
        """
        among = {node.uid: node for node in self.blocked()}
        edges = {uid: self._named(node, among) for uid, node in among.items()}
        reach = {uid: _reachable(uid, edges) for uid in among}
        knots = [frozenset(peer for peer in reach[uid] if uid in reach[peer]) for uid in among]
        # By rank; first a knot that no wait leads out of.
        for closed in (True, False):
            for uid, knot in zip(among, knots, strict=True):
                if uid in knot and (reach[uid] == knot or not closed):
                    return [among[member] for member in _ring(uid, knot, edges)]
        return []


def _if_unseen(process: Process) -> Process:
    """The process; as one that computes, if what it does is not known any more.

    ``was``: the process as it was last seen, for a sentence about it.
    """
    if process["unseen"] is None or "was" in process:
        return process
    nothing: dict[str, Any] = dict.fromkeys(("wait", "waits", "polls", "now", "where"))
    nothing |= dict.fromkeys(("others", "callbacks", "messages"), ())
    return {**process, **nothing, "state": "running", "settled": False, "was": process}


def _reachable(start: str, edges: Mapping[str, Sequence[str]]) -> frozenset[str]:
    found: set[str] = set()
    ahead = list(edges[start])
    while ahead:
        uid = ahead.pop()
        if uid not in found:
            found.add(uid)
            ahead += edges[uid]
    return frozenset(found)


def _ring(start: str, knot: frozenset[str], edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The knot's members: in the order of the ring if each waits for one other, or by rank."""
    inside = {uid: [peer for peer in edges[uid] if peer in knot] for uid in edges if uid in knot}
    if any(len(needed) != 1 for needed in inside.values()):
        return list(inside)
    order = [start]
    while (following := inside[order[-1]][0]) != start:
        order.append(following)
    return order
