"""Sentences about calls that were made before the one in which a process is blocked.

A call that waits for MPI's requests waits for the operations that other calls have begun. And
processes whose collective calls differ go on at first, and wait for each other in later ones. With
MPI, each tells which calls it has made on the communicator, so that the first difference is found;
the messages of a ``Group`` tell the call that has sent them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sfm_kernel._native import LIBRARY
from sfm_kernel.observe.code_locations import words
from sfm_kernel.observe.explain.but_for import listed
from sfm_kernel.observe.explain.graph import Graph, Node
from sfm_kernel.observe.waits import value_of

_SHOWN = 4
"""Operations that a sentence lists; of more, it gives the number."""

_NONBLOCKING = 1 << 29
"""Numbers of non-blocking calls are not smaller: native/mpi/src/collective/team.rs."""

_LAST = ("MPI_Finalize", "Finalize")
"""The call at the end of MPI, in C and in Python."""

_OF_OBJECTS, _APART, MAKER = (1 << bit for bit in (40, 41, 42))
"""Not smaller are numbers of mpi4py's reductions of objects, and of calls in which some processes
make a communicator alone; the call that has made the communicator has the last one:
.../comm/history.rs, .../comm/shown.rs."""

Begun = Mapping[str, Any]
"""See ``schema.json``, "begun"."""


def begun(process: Mapping[str, Any]) -> Iterator[str]:
    """The sentence on the open operations that a call waits for."""
    wait = process["wait"]
    found, count = wait.get("open", ()), wait.get("count", 1)
    texts = [at(operation) for operation in found]
    if count > 1:
        verb = "is" if len(found) == 1 else "are"
        yield f" {len(found)} of {count} requests {verb} open: {listed(texts, _SHOWN, 'more')}."
    elif found and (found[0]["where"] != process["where"] or _is_new(found[0], wait)):
        verb = "made" if _is_persistent(found[0]["text"]) else "begun"
        yield f" The request was {verb} by {texts[0]}."


def _is_persistent(text: str) -> bool:
    return text.partition("(")[0].endswith("_init")


def _is_new(operation: Begun, wait: Mapping[str, Any]) -> bool:
    """Whether the call that waits does not show what the operation is."""
    name = str(operation["text"]).partition("(")[0]
    return "=" not in wait["purpose"] and name not in wait["purpose"]


def at(call: Begun) -> str:
    location = words(call["where"])
    return f"{call['text']} in {location}" if location else str(call["text"])


def receives(process: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The open receives that a call waits for: each with the process as if it were in this one."""
    wait = process["wait"]
    if wait["kind"] != "other":
        return
    for operation in wait.get("open", ()):
        if "template" in operation:
            about = {key: operation[key] for key in ("template", "context_id")}
            yield operation["text"], {**process, "wait": {**wait, **about, "kind": "recv"}}


def as_receives(process: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The process as if it were in a receive: in the call itself, or in each that it waits for."""
    if process["wait"] is None:
        return [process]
    return [receive for _, receive in receives(process)] or [process]


# ---- collective calls that differ ----


def made_otherwise(node: Node, graph: Graph) -> Iterator[str]:
    """The sentence on members that have made another call in place of the one of this process."""
    wait = node.process["wait"]
    own = {call["number"]: call["text"] for call in now(node.process)}
    if not own:
        return
    others: dict[str, list[object]] = {}
    for other in _members(wait, graph):
        if _ahead(wait, other.process["wait"], _of_objects):
            continue  # that is said instead
        for call in other.process["wait"].get("made", ()):
            if call["number"] in own and _is_other(call["text"], own[call["number"]]):
                others.setdefault(at(call), []).append(other.name)
        if own and min(own) >= _APART and other.name in (wait["peers"] or ()):
            latest = [call for call in other.process["wait"].get("made", ()) if _is_apart(call)]
            if latest and latest[0]["number"] not in own:
                others.setdefault(at(latest[0]), []).append(other.name)
    for text, names in others.items():
        yield f" {listed(names, _SHOWN, 'others')} called {text} in place of that."


def _is_apart(call: Begun) -> bool:
    return bool(_APART <= call["number"] < MAKER)


def now(process: Mapping[str, Any]) -> list[Begun]:
    """The process's collective call, which is two if it has also made mpi4py's communicator."""
    wait = process["wait"]
    now = [call for call in wait.get("made", ()) if call["number"] == wait.get("turn")]
    if now and _OF_OBJECTS <= now[0]["number"] < _APART:
        latest = max(_blocking(wait), key=lambda call: call["number"], default=None)
        if latest and latest["where"] == process["where"]:
            now.append(latest)
    return now


def not_made(node: Node, graph: Graph) -> Iterator[str]:
    """The sentence on a collective call that members have made, and this process has not.

    That of its own turn is compared in ``made_otherwise``.
    """
    wait = node.process["wait"]
    said = "".join(made_otherwise(node, graph))
    others: dict[str, list[object]] = {}
    for other in _members(wait, graph):
        theirs = other.process["wait"]
        first = _ahead(wait, theirs, _of_objects)
        if "on" in wait:
            first = first or _ahead(wait, theirs, _blocking)
        if first and first["number"] != theirs.get("turn") and at(first) not in said:
            others.setdefault(at(first), []).append(other.name)
    for text, names in others.items():
        yield f" {listed(names, _SHOWN, 'others')} called {text}, and {node.name} did not."
    yield from not_begun(node, graph)


def not_begun(node: Node, graph: Graph) -> Iterator[str]:
    """The same for a non-blocking call in which members wait."""
    wait = node.process["wait"]
    members = _members(wait, graph) if "on" in wait or "turn" in wait else []
    waited = {other.process["wait"].get("turn") for other in members}
    others: dict[str, list[object]] = {}
    for other in members:
        first = _ahead(wait, other.process["wait"], _begun)
        if first and first["number"] in waited:
            others.setdefault(at(first), []).append(other.name)
    for text, names in others.items():
        own, name = _method(_name(node)).lower(), _method(text.partition("(")[0]).lower()
        rule = ": a blocking call does not match it" if name.replace("i", "", 1) == own else ""
        yield f" {listed(names, _SHOWN, 'others')} called {text}, and {node.name} did not{rule}."


def _ahead(
    wait: Mapping[str, Any],
    theirs: Mapping[str, Any],
    kind: Callable[[Mapping[str, Any]], list[Begun]],
) -> Begun | None:
    """The first call of this kind that another member has made, and this process has not."""
    own = kind(wait)
    if kind is _of_objects and not own:
        return None  # they may be forgotten: mpi4py frees its communicator at the end
    latest = max((call["number"] for call in own), default=-1)
    ahead = [call for call in kind(theirs) if call["number"] > latest]
    return min(ahead, key=lambda call: call["number"], default=None)


def of_groups(process: Mapping[str, Any]) -> Iterator[str]:
    """The sentence on messages of a group's calls that lie there from those who should send."""
    wait = process["wait"]
    if wait["kind"] != "recv":
        return
    found: dict[str, list[object]] = {}
    for message in process["messages"]:
        has, peers = dict(message["attributes"]), wait["peers"]
        is_of_group = {"chain", "what", "line"} <= has.keys() and message["context_id"]
        is_of_group = is_of_group and int(message["context_id"], 16) & LIBRARY
        is_other = message["context_id"] != wait["context_id"]
        if is_of_group and is_other and (peers is None or message["src"] in peers):
            # Long values are cut: without the name of the function, the line is shown.
            text = f"{value_of(has['what'])}{str(value_of(has['line'])).partition(' (')[0]}"
            names = found.setdefault(text, [])
            names.extend({message["src"]}.difference(names))
    for text, names in found.items():
        yield f" {listed(names, _SHOWN, 'others')} called {text}, and {process['name']} did not."


def _blocking(wait: Mapping[str, Any]) -> list[Begun]:
    return _between(wait, 0, _NONBLOCKING)


def _begun(wait: Mapping[str, Any]) -> list[Begun]:
    return _between(wait, _NONBLOCKING, _OF_OBJECTS)


def _of_objects(wait: Mapping[str, Any]) -> list[Begun]:
    return _between(wait, _OF_OBJECTS, _APART)


def _between(wait: Mapping[str, Any], first: int, end: int) -> list[Begun]:
    return [call for call in wait.get("made", ()) if first <= call["number"] < end]


def _members(wait: Mapping[str, Any], graph: Graph) -> list[Node]:
    """The blocked processes whose calls are of the same group."""
    waits = [(node, node.process["wait"]) for node in graph.nodes.values()]
    key = wait.get("on") or key_of(wait)
    if key is None:
        return []
    return [node for node, other in waits if other and key in (other.get("on"), key_of(other))]


def key_of(wait: Mapping[str, Any]) -> object:
    return (wait.get("group") or [None])[0]


def _is_other(one: str, two: str) -> bool:
    """Whether two texts show different calls; each process has its own name for the object.

    The groups of an intercommunicator do not give the same root.
    """
    if "ROOT" in one + two or "PROC_NULL" in one + two:
        one, two = (re.sub(r"(, )?root=[^,)]*", "", text) for text in (one, two))
    return _method(one) != _method(two)


def _method(text: str) -> str:
    """A call without its object, which may have parentheses of its own."""
    depth = 0
    for at in reversed(range(len(text))):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if not depth:
            return text[:at].rpartition(".")[2] + text[at:]
    return text


def differ(blocked: Sequence[Node], graph: Graph) -> Iterator[str]:
    """The sentence on blocked members of a group that are in different calls of it.

    Not if a member has already been said to have called something else.
    """
    if any(True for node in blocked for say in _SAID for _ in say(node, graph)):
        return
    groups: dict[object, list[Node]] = {}
    for node in blocked:
        groups.setdefault(key_of(node.process["wait"]), []).append(node)
    for key, members in groups.items():
        calls: dict[str, list[Node]] = {}
        for node in members:
            calls.setdefault(_method(_name(node)), []).append(node)
        if key is not None and len(calls) > 1:
            title = members[0].process["wait"]["group"][1]
            made = [f"{_are(same)} in {_name(same[0])}" for same in calls.values()]
            started = next((name for name in calls if _is_persistent(name)), "")
            rule = f"start the request of {started} equally often" if started else _RULE
            yield f"All processes of {title} {rule}, but {listed(made, _SHOWN, 'more')}."


_RULE = "make the same collective calls in the same order"
_SAID = (made_otherwise, not_begun)
"""Sentences of a process that say the same."""


def _name(node: Node) -> str:
    """The call without arguments: these may differ, such as the counts of a scatter."""
    wait = node.process["wait"]
    text = wait["open"][0]["text"] if "open" in wait else wait["purpose"]
    return str(text).partition("(")[0]


def _are(nodes: Sequence[Node]) -> str:
    names = [node.name for node in nodes]
    return f"{listed(names, _SHOWN, 'others')} {'is' if len(names) == 1 else 'are'}"


def opposite(blocked: Sequence[Node]) -> Iterator[str]:
    """The sentence on a process that waits for another one, which is in a call of another group.

    Not if one of them has come to the end of MPI: it has made all its calls.
    """
    going_on = [node for node in blocked if _method(_name(node)) not in _LAST]
    pairs = [
        (first, other)
        for first in going_on
        for other in going_on
        if other.uid in first.needs and _are_of_two_groups(first, other)
    ]
    mutual = [pair for pair in pairs if pair[0].uid in pair[1].needs]
    rule = "a process in both must call them in the same order as the others"
    for first, other in (mutual or pairs)[:1]:
        one, two = (node.process["wait"] for node in (first, other))
        name, second = one["group"][1], two["group"][1]
        if "eighbor_" in one["purpose"]:
            yield (
                f"{other.name} has sent nothing to {first.name} in that call: it has not made it, "
                f"or {first.name} is not one of its destinations in {name}."
            )
            return
        title, before = name, ""
        members = [wait.get("members", ()) for wait in (one, two)]
        if (
            title == second
            and members[0] != members[1]
            and sorted(map(str, members[0])) == sorted(map(str, members[1]))
        ):
            given = [listed(each, _SHOWN, "others") for each in members]
            yield (
                f"{first.name} gives the members of {name} as {given[0]}, and {other.name} as "
                f"{given[1]}: all must give them in the same order."
            )
            return
        if title == second:
            kind = "communicators" if "turn" in one else "groups"
            before = f"There are two {kind} named {name}. "
            title, second = "one of them", "the other"
            if "members" in one and "members" in two:
                title, second = (
                    f"that of {listed(wait['members'], _SHOWN, 'others')}" for wait in (one, two)
                )
        yield (
            f"{before}{first.name} is in a call of {title}, and {other.name} in one of {second}: "
            f"{rule}."
        )


def _are_of_two_groups(first: Node, other: Node) -> bool:
    """Whether two processes are in calls of different groups, and both are in the first's."""
    one, two = (node.process["wait"] for node in (first, other))
    if None in (key_of(one), key_of(two)) or key_of(one) == key_of(two):
        return False
    return other.name in one.get("members", [other.name])
