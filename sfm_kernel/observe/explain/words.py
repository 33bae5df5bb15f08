"""The diagnosis in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sfm_kernel.observe.code_locations import words
from sfm_kernel.observe.explain import but_for, calls, communicators, failures, outside, polls
from sfm_kernel.observe.explain.graph import Graph, Node
from sfm_kernel.observe.explain.inboxes import (
    misdirected,
    near_callbacks,
    nearly,
    unanswered,
    unfit,
    unreceived,
)
from sfm_kernel.observe.explain.near import limit_by_name
from sfm_kernel.observe.explain.together import merged

_RING = 10
"""Names of a ring that a title shows."""

_NAMES = 12
"""Names that a sentence lists; of more, it gives the number."""


def names(listed: Iterable[object], word: str = "and") -> str:
    """``A``, ``A and B``, ``0–7``, ``A, B and C``, ``A, B, … and 20 others``."""
    return but_for.listed(listed, _NAMES, "others", word)


def of_processes(judgements: Iterable[Mapping[str, Any]], graph: Graph) -> list[str]:
    """The sentences about the processes of a diagnosis; those that say the same are one."""
    said = (one for one in judgements if _has_sentence(one["uid"], graph))
    pairs = ((judgement["name"], judgement["text"]) for judgement in said)
    return [f"{names(named)} {text}".lstrip() for named, text in merged(pairs)]


def _has_sentence(uid: str, graph: Graph) -> bool:
    """Whether a process gets a sentence of its own.

    A notebook that waits for a cell and the asker get none; idle processes share one.
    """
    node = graph.nodes.get(uid)
    if node is None:  # it has ended
        return True
    return not (node.kind == "cell" or node.process["state"] == "idle" or graph.is_asker(node))


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
    if causes := failures.awaited(blocked, graph):
        ended = "; ".join(_ended_by(causes))
        pronoun = "it" if len(causes) == 1 else "them"
        return f"Deadlock: {ended}; {names(node.name for node in blocked)} {verb} for {pronoun}"
    for kind, ending in (
        ("collective", "a collective call that not all will make"),
        ("send", "somebody who will not receive"),
        ("recv", "a message that nobody will send"),
    ):
        if all(_sort(node) == kind for node in blocked):
            return f"Deadlock: {names(node.name for node in blocked)} {verb} for {ending}"
    return f"Deadlock: {names(node.name for node in blocked)} cannot go on"


def _sort(node: Node) -> str:
    """The kind of its wait; "collective" also for a receive inside a collective call."""
    wait = node.process["wait"]
    if node.kind == "recv" and wait["purpose"] and wait["peers"] and not wait["template"]:
        return "collective"
    return node.kind


def is_ring(cycle: Sequence[Node]) -> bool:
    """Whether each process waits for the next one, and for no other of them."""
    uids = [node.uid for node in cycle]
    following = [*uids[1:], *uids[:1]]
    return all(node.needs & set(uids) == {uid} for node, uid in zip(cycle, following, strict=True))


def _title_of_waits(graph: Graph) -> str:
    if not graph.nodes:
        return "Nobody is in this world"
    nodes = [node for node in graph.nodes.values() if not graph.is_asker(node)]
    if not nodes:
        return "Nobody else is in this world"
    unseen = [node.process for node in nodes if outside.does(node.process) == "unseen"]
    left = [node.process for node in nodes if node.process["state"] == "running"]
    left = [process for process in left if process not in unseen]
    polling = [node.name for node in nodes if node.process["polls"]]
    names_left = [process["name"] for process in left if not process["others"]]
    running = [name for name in names_left if name not in polling]
    blocked = [node.name for node in nodes if node.process["state"].startswith("blocked")]
    waiting = [name for name in blocked if name not in polling]
    halted = [node.process for node in nodes if outside.does(node.process) == "stopped"]
    stopped = [process["name"] for process in halted]
    if stopped and {*running, *polling} <= {*stopped}:
        return f"No deadlock is proven: {names(stopped)} {outside.verb(halted)}"
    if unseen and not (running or polling):
        them = names(process["name"] for process in unseen)
        return f"No deadlock is proven: {them} {outside.verb(unseen)}"
    if (waiting or polling) and running:
        busy = [process for process in left if process["name"] in running]
        return f"No deadlock: {names(running)} {outside.verb(busy, 'still')}"
    if polling and not running:
        more = "No deadlock is proven: " if waiting else ""
        return f"{more}{names(polling)} poll{'s' if len(polling) == 1 else ''}"
    if waiting:
        you = _what_you_can_do(graph)
        return f"No deadlock yet: you could still {you}" if you else "No deadlock is proven"
    if left and not running:
        return but_for.nobody_runs(left)
    return f"{names(running)} run{'s' if len(running) == 1 else ''}" if running else "All are idle"


def _what_you_can_do(graph: Graph) -> str:
    """Advice to the user who asks; "" if another process can help, or if nobody knows."""
    helpless = graph.left_to_asker()
    needed = {uid for node in helpless for uid in node.needs if uid in graph.nodes}
    engines = [node for uid, node in graph.nodes.items() if uid in needed and node.kind == "idle"]
    if free := [node.name for node in engines if node.process["kind"] == "engine"]:
        return f"give {names(free, 'or')} a cell"
    asker = {uid for uid, node in graph.nodes.items() if graph.is_asker(node)}
    asked = [node for node in helpless if node.needs & asker]
    if waiting := [node.name for node in asked if node.kind == "recv"]:
        return f"send {names(waiting, 'or')} a message"
    if sending := [node.name for node in asked if node.kind == "send"]:
        return f"receive what {names(sending, 'or')} sends"
    return ""


def sentence(node: Node, graph: Graph) -> str:
    """The sentences about a process: its activity, and why it does not go on."""
    process, name = node.process, node.name
    state = process["state"]
    if state == "idle":
        does = process["waits"] or "runs no cell"
        texts = {"engine": f"is idle: it {does}", "process": "has come to its end"}
        if process["failed"]:
            return f"{name} {failures.text(process)}."
        return f"{name} {texts.get(process['kind'], 'is idle')}."
    if state == "damaged":
        return f"{name} lives, and its segment is damaged: what it does cannot be read."
    if outside.does(process) == "unseen":
        return outside.unseen(process, graph.time)
    location = words(process["where"])
    at_line = f" in {location}" if location else ""
    if outside.does(process) == "stopped":
        return outside.stopped(process)
    if process["polls"]:
        asked = polls.as_receive(process)
        more = [*calls.begun(asked), *_near(Node(asked))]
        return polls.sentence(process, graph.time) + "".join(more)
    if state == "running" and process["others"]:
        return f"{but_for.left(process)}."
    if state == "running":
        return outside.sentence(process) + "".join(near_callbacks(process))
    wait = process["wait"]
    if wait is None:
        return f"{name} waits for {process['waits'] or 'something'}{at_line}."
    text = f"{name} {_what(wait, _group(node, graph))}{at_line}."
    text += "".join(calls.begun(process)) + "".join(calls.made_otherwise(node, graph))
    text += "".join(calls.not_made(node, graph)) + "".join(calls.of_groups(process))
    more = [*_near(node), *near_callbacks(process), *unanswered(process)]
    return text + _because(node, graph) + "".join(more)


def _group(node: Node, graph: Graph) -> str:
    """The words " of GROUP" for a collective call, if calls of several groups are blocked."""
    waits = [blocked.process["wait"] for blocked in graph.blocked()]
    groups = {tuple(wait["group"]) for wait in waits if wait.get("group")}
    wait = node.process["wait"]
    _, title = wait.get("group") or ("", "")
    return f" of {title}" if title and len(groups) > 1 and title not in wait["purpose"] else ""


def _what(wait: Mapping[str, Any], group: str) -> str:
    purpose, text = wait["purpose"] + group, wait["text"]
    if wait["kind"] == "send":
        return f"is in send: it waits for {text}"
    if wait["kind"] == "collective":
        return f"is in {purpose or text} and waits for {names(wait['peers'] or ['others'])}"
    if wait["kind"] == "cell":
        return f"waits for {text}"
    if purpose and wait["peers"] and not wait["template"]:  # a library's internal messages
        return f"is in {purpose} and waits for {names(wait['peers'])}"
    text = text.removeprefix(f"{purpose}: ")
    if purpose == text and wait["template"] and "=" in text:  # a call in C, with its template
        return f"is in {text}"
    if purpose == text and wait["template"]:  # a receive of MPI
        text = ", ".join(f"{asked['name']}={asked['value']}" for asked in wait["template"])
        return f"is in {purpose} and waits for a message with {text}"
    if purpose == text:
        others = "any message" if wait["kind"] == "recv" else "others"
        return f"is in {purpose} and waits for {names(wait['peers'] or [others])}"
    return f"is in {purpose} and waits for {text}" if purpose else f"waits for {text}"


def _because(node: Node, graph: Graph) -> str:
    nobody = f" {_nobody(node.absent, graph)}" if node.absent and node.kind == "join" else ""
    if node.acts and node.kind != "cell":
        return f"{nobody} That may end: {node.acts}."
    if node.absent:
        return f" {_nobody(node.absent, graph)}"
    idle = _idle_that_are_needed(node, graph)
    failed = [peer for peer in idle if peer.process["failed"]]
    if failed and failures.awaited(graph.blocked(), graph):  # the title names them
        idle = [peer for peer in idle if peer not in failed]
    if _sort(node) == "collective":
        return _idleness(idle, "does not make that call", "do not make that call")
    if graph.is_for_anybody(node):
        nobody = " No process is left that could send." if node.uid in graph.stuck else ""
        return nobody + "".join(unreceived(node, graph))
    if node.kind == "recv":
        idleness = _idleness(idle, "sends nothing", "send nothing")
        return (
            idleness + "".join(_of_cells(node, graph, "sends")) + "".join(unreceived(node, graph))
        )
    if node.kind == "send":
        idleness = _idleness(idle, "receives nothing", "receive nothing")
        return (
            idleness + "".join(_of_cells(node, graph, "receives")) + "".join(_no_room(node, graph))
        )
    return ""


def _idle_that_are_needed(node: Node, graph: Graph) -> list[Node]:
    """The idle processes that a process waits for by name."""
    if node.kind not in ("recv", "send", "collective") or node.process["wait"]["peers"] is None:
        return []
    if node.absent:  # the sentence names those instead
        return []
    needed = (peer for uid, peer in graph.nodes.items() if uid in node.needs)  # by rank
    return [peer for peer in needed if peer.kind == "idle"]


def _of_cells(node: Node, graph: Graph, verb: str) -> Iterator[str]:
    """The sentence on a notebook that a call waits for, and that itself waits for its cell."""
    for uid in sorted(node.needs & graph.nodes.keys()):
        if graph.nodes[uid].kind == "cell":
            yield f" {graph.nodes[uid].name} waits until the cell has ended, and {verb} nothing."


def _no_room(node: Node, graph: Graph) -> Iterator[str]:
    if node.process["wait"]["text"].startswith("room "):
        for uid in node.needs & graph.nodes.keys():
            if graph.has_earlier(node, graph.nodes[uid]):
                name = graph.nodes[uid].name
                yield f" {name} has not received all that {node.name} sent before."


def _nobody(absent: Sequence[object], graph: Graph) -> str:
    there = [node.process for node in graph.nodes.values()]
    ranks = sorted(process["rank"] for process in there if process["rank"] is not None)
    if ranks and all(isinstance(name, int) for name in absent):
        first, last = ranks[0], ranks[-1]
        if len(ranks) == 1:
            known = f"the only rank is {first}"
        elif last - first == len(ranks) - 1:
            known = f"the ranks are {first} to {last}"
        else:
            known = f"the ranks are {names(ranks)}"
    else:
        known = f"there {'is' if len(there) == 1 else 'are'} {names(one['name'] for one in there)}"
    return f"Nobody is named {names((repr(one) for one in absent), 'or')}; {known}."


def _idleness(idle: Sequence[Node], singular: str, plural: str) -> str:
    """Sentences on the ended and the idle processes; ``singular``, ``plural``: what follows."""
    pairs = _at_rest(idle)
    return "".join(f" {text} and {singular if count == 1 else plural}." for count, text in pairs)


def _at_rest(idle: Sequence[Node]) -> Iterator[tuple[int, str]]:
    """The numbers of ended, failed and idle processes, each with the beginning of a sentence."""
    if ended := [node.name for node in idle if node.process["kind"] == "process"]:
        verb = "has come to its" if len(ended) == 1 else "have come to their"
        yield len(ended), f"{names(ended)} {verb} end"
    for text in _ended_by(idle):
        yield 1, text
    rest = [node for node in idle if node.process["kind"] != "process"]
    if free := [node.name for node in rest if not node.process["failed"]]:
        yield len(free), f"{names(free)} {'is' if len(free) == 1 else 'are'} idle"


def _ended_by(nodes: Iterable[Node]) -> Iterator[str]:
    """The errors that have ended the cells of engines, each with its engines."""
    for text, failed in failures.by_text(nodes).items():
        yield f"{names(node.name for node in failed)} {text}"


def _near(node: Node) -> Iterator[str]:
    for text, process in calls.receives(node.process):
        yield from (f" For {text},{found}" for found in nearly(process))
    if node.process["wait"]["kind"] == "recv" and _sort(node) != "collective":
        yield from list(nearly(node.process)) or unfit(node.process)
        if limit := limit_by_name(node.process["wait"]):
            has = "is an attribute that the message must have"
            yield f" {limit} {has}: a limit of time comes first."


def summary(graph: Graph, cycle: Sequence[Node]) -> Iterator[str]:
    """The last sentences of a deadlock: what follows for the blocked processes."""
    blocked = graph.blocked()
    if not blocked:
        return
    causes = failures.awaited(blocked, graph)
    said = {peer.uid for node in blocked for peer in _idle_that_are_needed(node, graph)}
    said |= {node.uid for node in causes}
    idle = [node for node in graph.nodes.values() if node.kind == "idle" and node.uid not in said]
    idle = [node for node in idle if node.process["kind"] != "notebook"]
    for _, text in _at_rest(idle):
        yield f"{text}."
    if not causes:
        yield "No message is on its way."
    if len(cycle) > 1:
        none = "neither" if len(cycle) == 2 else "none of them"
        ring = names(node.name for node in cycle)
        yield f"{ring} wait for each other, so {none} can ever go on."
    yield from calls.opposite(blocked)
    yield from calls.differ(blocked, graph)
    yield from communicators.roots(blocked)
    yield from communicators.leaders(blocked)
    yield from communicators.makers(blocked)
    rest = [node for node in blocked if cycle and node not in cycle]
    victims = [node.name for node in rest if graph.waits_for(node, cycle)]
    if victims:
        verb = "waits" if len(victims) == 1 else "wait"
        yield f"{names(victims)} {verb} for {'them' if len(cycle) > 1 else cycle[0].name}."
    if others := [node.name for node in rest if node.name not in victims]:
        yield f"{names(others)} can never go on, either."
    yield from misdirected(graph)
