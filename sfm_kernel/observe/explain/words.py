"""The diagnosis in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sfm_kernel.observe.explain.graph import Graph, Node
from sfm_kernel.observe.explain.near import SHOWN, fits
from sfm_kernel.observe.places import words

Near = Mapping[str, Any]

_RING = 10
"""Names of a ring that a title shows."""


def names(ones: Iterable[object], word: str = "and") -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    texts = [str(one) for one in ones]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"


def title(graph: Graph, cycle: Sequence[Node]) -> str:
    """The diagnosis in one line."""
    blocked = graph.blocked()
    if not blocked:
        return _title_of_waits(graph)
    if len(cycle) > 1 and is_ring(cycle):
        ring = [str(node.name) for node in [*cycle, cycle[0]]]
        if len(ring) > _RING:
            ring = [*ring[: _RING - 2], f"… ({len(cycle)} processes)", ring[-1]]
        return f"Deadlock: {' → '.join(ring)}"
    if len(cycle) > 1:
        return f"Deadlock: {names(node.name for node in cycle)} wait for each other"
    if cycle:
        return f"Deadlock: {cycle[0].name} waits for itself"
    verb = "waits" if len(blocked) == 1 else "wait"
    for kind, what in (
        ("collective", "a collective call that not all will come to"),
        ("send", "somebody who will not receive"),
        ("recv", "a message that nobody will send"),
    ):
        if all(node.kind == kind for node in blocked):
            return f"Deadlock: {names(node.name for node in blocked)} {verb} for {what}"
    return f"Deadlock: {names(node.name for node in blocked)} cannot go on"


def is_ring(cycle: Sequence[Node]) -> bool:
    """Whether each waits for the next one, and for no other of them."""
    uids = [node.uid for node in cycle]
    following = [*uids[1:], *uids[:1]]
    return all(node.needs & set(uids) == {uid} for node, uid in zip(cycle, following, strict=True))


def _title_of_waits(graph: Graph) -> str:
    nodes = list(graph.nodes.values())
    if not nodes:
        return "Nobody is in this world"
    running = [node.name for node in nodes if node.process["state"] == "running"]
    waiting = [node.name for node in nodes if node.process["state"].startswith("blocked")]
    if waiting and running:
        return f"No deadlock: {names(running)} still compute{'s' if len(running) == 1 else ''}"
    if waiting:
        return "No deadlock is proven"
    return f"{names(running)} run{'s' if len(running) == 1 else ''}" if running else "All are idle"


def sentence(node: Node, graph: Graph, near: Sequence[Near]) -> str:
    """What one process does, and why it does not go on."""
    process, name = node.process, node.name
    state = process["state"]
    if state == "idle":
        what = {"engine": "is idle: it runs no cell", "process": "has come to its end"}
        return f"{name} {what.get(process['kind'], 'is idle')}."
    where = words(process["where"])
    at = f" in {where}" if where else ""
    if state == "running" and process["kind"] == "notebook":
        return f"{name} runs a cell."
    if state == "running":
        last = f"; its last call was in {where}" if where and process["sent"] else ""
        return f"{name} computes{last}."
    wait = process["wait"]
    if wait is None:
        return f"{name} waits for {process['waits'] or 'something'}{at}."
    return f"{name} {_what(wait)}{at}.{_because(node, graph)}" + "".join(_near(node, near))


def _what(wait: Mapping[str, Any]) -> str:
    purpose, text = wait["purpose"], wait["text"]
    if wait["kind"] == "send":
        return f"is in send: it waits for {text}"
    if wait["kind"] == "collective":
        return f"is in {purpose or text} and waits for {names(wait['peers'] or ['others'])}"
    if wait["kind"] == "cell":
        return f"waits for {text}"
    text = text.removeprefix(f"{purpose}: ")
    if purpose == text and wait["template"]:  # a receive of MPI
        text = ", ".join(f"{one['name']}={one['value']}" for one in wait["template"])
        return f"is in {purpose} and waits for a message with {text}"
    if purpose == text:
        return f"is in {purpose} and waits for {names(wait['peers'] or ['others'])}"
    return f"is in {purpose} and waits for {text}" if purpose else f"waits for {text}"


def _because(node: Node, graph: Graph) -> str:
    if node.acts and node.kind != "cell":
        return f" That may end: {node.acts}."
    if node.absent:
        return f" Nobody is named {names((repr(one) for one in node.absent), 'or')}."
    others = [graph.nodes[uid] for uid in node.needs if uid in graph.nodes]
    if node.kind == "collective":
        idle = [one.name for one in others if one.kind == "idle"]
        if idle:
            verb = "has" if len(idle) == 1 else "have"
            return f" {names(idle)} {verb} come to the end without that call."
    if node.kind == "recv" and node.process["wait"]["peers"] is not None:
        idle = [one.name for one in others if one.kind == "idle"]
        if idle:
            return f" {names(idle)} is idle and sends nothing."
    return ""


def _near(node: Node, near: Sequence[Near]) -> Iterator[str]:
    wait, process = node.process["wait"], node.process
    if wait["kind"] != "recv":
        return
    if near:
        count, fit = len(near), "fits" if len(near) == 1 else "fit"
        messages = "message" if count == 1 else "messages"
        least = "at least " if count == SHOWN and process["depth"] > SHOWN else ""
        yield f" {node.name}'s inbox holds {least}{count} {messages} that nearly {fit}: "
        yield "; ".join(dict.fromkeys(_difference(one) for one in near)) + "."
    elif process["messages"]:
        count = process["depth"]
        messages = "message" if count == 1 else "messages"
        yield f" {node.name}'s inbox holds {count} {messages}, of which none fits."


def _difference(near: Near) -> str:
    told = []
    for miss in near["misses"]:
        if miss["has"] is None:
            told.append(f"it has no {miss['name']}")
        elif miss["wants"].startswith("<"):
            told.append(f"{miss['name']} is {miss['has']}, which {miss['wants']} does not accept")
        else:
            told.append(f"{miss['name']} is {miss['has']}, not {miss['wants']}")
    return " and ".join(told)


def misdirected(graph: Graph) -> Iterator[str]:
    """Messages that fit somebody's receive, and lie in somebody else's inbox."""
    for node in graph.blocked():
        wait = node.process["wait"]
        if wait["kind"] != "recv" or not wait["template"]:
            continue
        for other in graph.processes:
            if other["uid"] == node.uid:
                continue
            found = [
                one
                for one in other["messages"]
                if one["space"] == wait["space"] and fits(wait["template"], one)
            ]
            if found:
                src = found[0]["src"]
                yield (
                    f"A message that would fit {node.name}'s receive lies in {other['name']}'s "
                    f"inbox: {src} has sent it there."
                )


def summary(graph: Graph, cycle: Sequence[Node]) -> Iterator[str]:
    """What all this comes to."""
    blocked = graph.blocked()
    if not blocked:
        return
    idle = [node for node in graph.nodes.values() if node.kind == "idle"]
    ended = [node.name for node in idle if node.process["kind"] == "process"]
    free = [node.name for node in idle if node.process["kind"] == "engine"]
    if ended:
        yield f"{names(ended)} {'has' if len(ended) == 1 else 'have'} come to the end."
    if free:
        yield f"{names(free)} {'is' if len(free) == 1 else 'are'} idle."
    yield "No message is on its way."
    ring = {node.uid for node in cycle}
    if len(cycle) > 1:
        yield (
            f"{names(node.name for node in cycle)} wait for each other, so that none of them can "
            f"ever go on."
        )
    victims = [node.name for node in blocked if node.uid not in ring]
    if cycle and victims:
        verb = "waits" if len(victims) == 1 else "wait"
        yield f"{names(victims)} {verb} for them."
    yield from misdirected(graph)
