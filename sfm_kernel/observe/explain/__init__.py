"""The diagnosis: why a world does not go on.

graph   the wait-for graph, and the processes that can never go on
but_for deadlocks that only a thread or a callback could resolve
polls   processes that poll
outside processes that are in no call of this package
near    messages that nearly fit
inboxes sentences about messages that lie in inboxes
taken   messages that would have fitted, but were received before
rounds  the calls that one process repeats
communicators  what has made MPI's communicators, and what their groups must give
repetition  livelocks, and processes that starve
failures  engines whose cell has ended with an error
together  sentences and names of many processes in few words
words   the diagnosis in sentences
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

from sfm_kernel._native import Observer
from sfm_kernel.observe.explain import but_for, outside, polls, words
from sfm_kernel.observe.explain.alone import waits_for_lock
from sfm_kernel.observe.explain.graph import YOUNG, Graph, Node
from sfm_kernel.observe.explain.near import near_misses, of_callback, regcb
from sfm_kernel.observe.explain.repetition import Repetition, overtaken, repeated
from sfm_kernel.observe.explain.taken import Traces, taken
from sfm_kernel.observe.snapshot import Remote, calls, folder_of, snapshot

__all__ = ["Graph", "diagnose", "explain", "look"]


def explain(
    world: Any,
    patience: float = 0.0,
    remote: Remote | None = None,
    at_work: Callable[[], Collection[object]] = tuple,
    observer: Observer | None = None,
    history: bool = True,
) -> dict[str, Any]:
    """Explain why a world does not go on: its waits, and whether they can end.

    The diagnosis claims a deadlock only if it is certain: no process of ``stuck`` can go on,
    whatever the others do, unless a user interrupts it or gives an engine a cell. A wait is judged
    once it has lasted 0.3 s.

    Two worlds are taken to be complete: a world with a size once it has all its ranks, and a
    cluster with its engines and the notebooks that have joined. Others may join all the same if
    they know its name: if a program has read ``Endpoint.world``, or a guest has joined the cluster.
    Then a process that waits for any sender, or for a name that nobody has, is not
    called stuck. Processes that wait for each other are.

    Args:
        world: its folder on this machine, or an endpoint in it. The diagnosis does not say of the
            endpoint's process that it computes: it runs in order to ask.
        patience: seconds to wait until calls that have just begun can be judged. If it is not 0,
            a livelock is looked for, too, which takes three seconds where nothing seems to change.
        at_work: gives the names of processes that have been given work; within ``patience``,
            ``explain`` waits until they begin it.
        remote: gives the processes on other machines. Its second answer is fresh: between the two
            readings of each process, on this machine or another, lies one moment at which all
            processes that were in the same call in both readings were in it together.
        observer: as for ``snapshot``.
        history: also say which process received the messages that would have fitted, and what
            those that act do again and again. Costs some 5 ms for each process that is involved.
    Returns:
        The "diagnosis" of ``schema.json``.
    Raises:
        FileNotFoundError: there is no such world.
    """
    folder = folder_of(world)
    asker = getattr(world, "uid", "")
    deadline = time.monotonic() + patience
    while True:
        graph = look(folder, remote, observer, asker)
        if graph.stuck or time.monotonic() >= deadline or not _is_early(graph, at_work()):
            break
        time.sleep(YOUNG / 3)
    if patience and not graph.stuck:
        repetition = Repetition(folder)
        doubt, graph = repetition.watch(graph, lambda: look(folder, remote, observer, asker))
        if doubt is not None:
            return repetition.told(doubt, graph, diagnose(graph, folder))
    return diagnose(graph, folder, Traces(folder) if history else None)


def look(
    folder: str, remote: Remote | None = None, observer: Observer | None = None, asker: str = ""
) -> Graph:
    """The wait-for graph of a world now; ``asker``: the uid of the process that asks."""
    before = calls(folder, remote(False) if remote else (), observer)
    return Graph(snapshot(folder, remote(True) if remote else (), observer), before, asker)


def _is_early(graph: Graph, at_work: Collection[object]) -> bool:
    """Whether a process has only just begun what it does, or is about to begin."""
    for node in graph.nodes.values():
        process = node.process
        if process["state"] == "idle" and node.name in at_work:
            return True
        fresh = process["state"] == "running" and graph.time - process["since"] < YOUNG
        if node.young or (fresh and process["kind"] != "notebook"):
            return True
    return False


def diagnose(graph: Graph, folder: str = "", traces: Traces | None = None) -> dict[str, Any]:
    """The diagnosis of a wait-for graph."""
    cycle = graph.cycle()
    nodes = _in_order(graph, cycle)
    doubtful = but_for.but_for(graph)
    without = doubtful[1] if doubtful else graph
    near = {node.uid: near_misses(polls.as_receive(node.process)) for node in nodes}
    judgements = [_judgement(node, graph, near[node.uid]) for node in nodes]
    if traces is not None:
        for judgement, node in zip(judgements, nodes, strict=True):
            judgement["text"] += _received_before(node, without, traces)
            judgement["text"] += repeated(node, graph, traces) + overtaken(node, graph, traces)
    ended = [_ended(process) for process in graph.processes if not process["alive"]]
    sentences = words.of_processes(judgements + ended, graph)
    sentences += outside.unreachable(graph.processes, graph.time)
    waits = ((node.process, uid) for node in nodes if node.is_blocked for uid in node.needs)
    waiting = [(process, graph.nodes[uid].process) for process, uid in waits if uid in graph.nodes]
    sentences += outside.links_in_trouble(waiting, graph.links)
    sentences += words.summary(graph, cycle)
    title = words.title(graph, cycle)
    if doubtful:
        about = doubtful[0]
        title = but_for.title(about, words.title(without, without.cycle()))
        sentences.append(but_for.summary(about))
    blocked = graph.blocked()
    return {
        "world": folder.rstrip("/").rpartition("/")[2],
        "time": graph.time,
        "verdict": _verdict(graph),
        "cycle": [node.name for node in cycle],
        "stuck": [node.name for node in blocked],
        "since": max((node.process["since"] for node in blocked), default=None),
        "title": title,
        "sentences": sentences,
        "edges": [edge for node in nodes for edge in _edges(node, graph, cycle)],
        "but_for": doubtful and doubtful[0],
        "processes": judgements + ended,
    }


def _in_order(graph: Graph, cycle: list[Node]) -> list[Node]:
    """The cycle's processes, then those that wait for it, then all others."""
    first = [node.uid for node in cycle] + [node.uid for node in graph.blocked()]
    order = {uid: nth for nth, uid in enumerate(dict.fromkeys(first))}
    return sorted(graph.nodes.values(), key=lambda node: order.get(node.uid, len(order)))


def _verdict(graph: Graph) -> str:
    if not graph.nodes:
        return "empty"
    if graph.blocked():
        return "deadlock"
    others = [node for node in graph.nodes.values() if not graph.is_asker(node)]
    states = [node.process["state"] for node in others]
    if any(state.startswith("blocked") for state in states):
        return "waiting"
    return "running" if {"running", "damaged"} & set(states) else "idle"


def _received_before(node: Node, graph: Graph, traces: Traces) -> str:
    """A sentence on what a stuck receive, or a lock that a callback would release, waits for, and
    was received before; "" if there is none.

    ``graph``: also one without threads and callbacks, of a deadlock that only these could resolve.
    """
    alone = graph.nodes[node.uid]
    if node.uid not in graph.stuck:
        return ""
    if waits_for_lock(node.process):
        waits = ((of_callback(node.process, one), regcb(one)) for one in node.process["callbacks"])
        return "".join(taken(wait, graph.processes, traces, (), text) for wait, text in waits)
    if alone.kind != "recv":
        return ""
    return taken(alone.process, graph.processes, traces, node.process["others"])


def _judgement(node: Node, graph: Graph, near: list[dict[str, Any]]) -> dict[str, Any]:
    process, text = node.process, words.sentence(node, graph)
    if process["state"] == "idle":
        verdict = "idle"
    elif node.uid in graph.stuck and node.is_blocked:
        verdict = "stuck"
    else:
        verdict = "waits" if process["state"].startswith("blocked") else "acts"
    return {
        "uid": node.uid,
        "name": node.name,
        "verdict": verdict,
        "text": text,
        "where": polls.as_receive(process)["where"],
        "call": process["call"],
        "near": near,
    }


def _ended(process: Any) -> dict[str, Any]:
    known = {key: process[key] for key in ("uid", "name", "where", "call")}
    verdict, end = ("left", "left") if process["state"] == "left" else ("ended", "ended")
    text = f"{process['name']} {process['end'] or f'has {end}'}."
    return {**known, "verdict": verdict, "text": text, "near": []}


def _edges(node: Node, graph: Graph, cycle: list[Node]) -> list[dict[str, Any]]:
    """The edges of a process's waits.

    A receive from any sender has an edge to each process that could send, except the idle ones.
    """
    wait = node.process["wait"]
    if wait is None:
        return []
    ring = {member.uid for member in cycle}
    needs = [graph.nodes[uid] for uid in node.needs if uid in graph.nodes]
    if wait["peers"] is None:
        needs = [peer for peer in needs if peer.process["state"] != "idle"]
    return [
        {
            "from": node.name,
            "to": peer.name,
            "kind": node.kind,
            "label": wait["text"],
            "cycle": node.uid in ring and peer.uid in ring,
        }
        for peer in sorted(needs, key=lambda peer: str(peer.name))
    ]
