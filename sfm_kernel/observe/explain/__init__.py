"""Why a world does not go on.

graph   who waits for whom, and who can never go on
near    messages that nearly fit
words   the diagnosis in sentences
"""

from __future__ import annotations

import time
from typing import Any

from sfm_kernel.observe.explain import words
from sfm_kernel.observe.explain.graph import YOUNG, Graph, Node
from sfm_kernel.observe.explain.near import near_misses
from sfm_kernel.observe.snapshot import Elsewhere, calls, folder_of, snapshot

__all__ = ["Graph", "diagnose", "explain"]


def explain(
    world: Any, patience: float = 0.0, elsewhere: Elsewhere | None = None
) -> dict[str, Any]:
    """Why a world does not go on: who waits for whom, and whether that can ever end.

    A deadlock is only claimed where it is certain: no process of ``stuck`` can go on, whatever the
    others do, unless somebody interrupts it or gives an engine a cell. A wait is judged once it
    has lasted 0.3 s.

    Args:
        world: its folder on this machine, or an endpoint in it.
        patience: seconds to wait until the waits that have begun just now can be judged.
        elsewhere: gives the processes on other machines. What it is asked for a second time is
            fresh: between the two looks at each process, here or there, lies one moment, at which
            those that were in the same call in both looks were in it all together.
    Returns:
        As ``schema.json`` has it, "diagnosis".
    Raises:
        FileNotFoundError: there is no such world.
    """
    folder = folder_of(world)
    deadline = time.monotonic() + patience
    while True:
        before = calls(folder, elsewhere(False) if elsewhere else ())
        graph = Graph(snapshot(folder, elsewhere(True) if elsewhere else ()), before)
        young = any(node.young for node in graph.nodes.values())
        if not young or graph.stuck or time.monotonic() >= deadline:
            return diagnose(graph, folder)
        time.sleep(YOUNG / 3)


def diagnose(graph: Graph, folder: str = "") -> dict[str, Any]:
    """The diagnosis of a wait-for graph."""
    cycle = graph.cycle()
    nodes = _in_order(graph, cycle)
    near = {node.uid: near_misses(node.process) for node in nodes}
    judgements = [_judgement(node, graph, near[node.uid]) for node in nodes]
    shown = [one for one, node in zip(judgements, nodes, strict=True) if _is_told(node)]
    sentences = [one["text"] for one in shown]
    sentences += [_end(one) for one in graph.processes if not one["alive"]]
    sentences += words.summary(graph, cycle)
    blocked = graph.blocked()
    return {
        "world": folder.rstrip("/").rpartition("/")[2],
        "time": graph.time,
        "verdict": _verdict(graph),
        "cycle": [node.name for node in cycle],
        "stuck": [node.name for node in blocked],
        "since": max((node.process["since"] for node in blocked), default=None),
        "title": words.title(graph, cycle),
        "sentences": sentences,
        "edges": [edge for node in nodes for edge in _edges(node, graph, cycle)],
        "processes": judgements + [_ended(one) for one in graph.processes if not one["alive"]],
    }


def _in_order(graph: Graph, cycle: list[Node]) -> list[Node]:
    """The cycle, who waits for it, all others."""
    first = [node.uid for node in cycle] + [node.uid for node in graph.blocked()]
    order = {uid: nth for nth, uid in enumerate(dict.fromkeys(first))}
    return sorted(graph.nodes.values(), key=lambda node: order.get(node.uid, len(order)))


def _is_told(node: Node) -> bool:
    """The notebook's own wait goes without saying; idle ones are told of together."""
    return node.kind != "cell" and node.process["state"] != "idle"


def _verdict(graph: Graph) -> str:
    states = [node.process["state"] for node in graph.nodes.values()]
    if not states:
        return "empty"
    if graph.blocked():
        return "deadlock"
    if any(node.process["state"].startswith("blocked") for node in graph.nodes.values()):
        return "waiting"
    return "running" if "running" in states else "idle"


def _judgement(node: Node, graph: Graph, near: list[dict[str, Any]]) -> dict[str, Any]:
    process = node.process
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
        "text": words.sentence(node, graph, near),
        "where": process["where"],
        "call": process["call"],
        "near": near,
    }


def _ended(process: Any) -> dict[str, Any]:
    kept = {key: process[key] for key in ("uid", "name", "where", "call")}
    verdict = "left" if process["state"] == "left" else "dead"
    return {**kept, "verdict": verdict, "text": _end(process), "near": []}


def _end(process: Any) -> str:
    left = process["state"] == "left"
    return f"{process['name']} has left." if left else f"{process['name']} has died."


def _edges(node: Node, graph: Graph, cycle: list[Node]) -> list[dict[str, Any]]:
    """Its waits. Who waits for anybody has an edge to each who could send, but to no idle one."""
    wait = node.process["wait"]
    if wait is None:
        return []
    ring = {one.uid for one in cycle}
    needs = [graph.nodes[uid] for uid in node.needs if uid in graph.nodes]
    if wait["peers"] is None:
        needs = [one for one in needs if one.process["state"] != "idle"]
    return [
        {
            "from": node.name,
            "to": one.name,
            "kind": node.kind,
            "label": wait["text"],
            "cycle": node.uid in ring and one.uid in ring,
        }
        for one in sorted(needs, key=lambda one: str(one.name))
    ]
