"""Sentences about calls that were made before the one in which a process is blocked.

A call that waits for MPI's requests waits for the operations that other calls have begun. And
processes whose collective calls differ go on at first, and wait for each other in later ones. With
MPI, each tells which calls it has made on the communicator, so that the first difference is found;
the messages of a ``Group`` tell the call that has sent them.
"""

from __future__ import annotations

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

_OF_OBJECTS = 1 << 40
"""Numbers of mpi4py's reductions of objects are not smaller: .../collective/history.rs."""

Begun = Mapping[str, Any]
"""See ``schema.json``, "begun"."""


def begun(process: Mapping[str, Any]) -> Iterator[str]:
    """The sentence on the open operations that a call waits for."""
    wait = process["wait"]
    found, count = wait.get("open", ()), wait.get("count", 1)
    texts = [_at(operation) for operation in found]
    if count > 1:
        verb = "is" if len(found) == 1 else "are"
        yield f" {len(found)} of {count} requests {verb} open: {listed(texts, _SHOWN, 'more')}."
    elif found and (found[0]["where"] != process["where"] or _is_new(found[0], wait)):
        yield f" The request was begun by {texts[0]}."


def _is_new(operation: Begun, wait: Mapping[str, Any]) -> bool:
    """Whether the call that waits does not show what the operation is."""
    name = str(operation["text"]).partition("(")[0]
    return "=" not in wait["purpose"] and name not in wait["purpose"]


def _at(call: Begun) -> str:
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
    own = {call["number"]: call["text"] for call in _now(node.process)}
    if not own:
        return
    others: dict[str, list[object]] = {}
    for other in _members(wait, graph):
        if _ahead(wait, other.process["wait"], _of_objects):
            continue  # that is said instead
        for call in other.process["wait"].get("made", ()):
            if call["number"] in own and _is_other(call["text"], own[call["number"]]):
                others.setdefault(_at(call), []).append(other.name)
    for text, names in others.items():
        yield f" {listed(names, _SHOWN, 'others')} called {text} in place of that."


def _now(process: Mapping[str, Any]) -> list[Begun]:
    """The process's collective call, which is two if it has also made mpi4py's communicator."""
    wait = process["wait"]
    now = [call for call in wait.get("made", ()) if call["number"] == wait.get("turn")]
    if now and now[0]["number"] >= _OF_OBJECTS:
        latest = max(_blocking(wait), key=lambda call: call["number"], default=None)
        if latest and latest["where"] == process["where"]:
            now.append(latest)
    return now


def not_made(node: Node, graph: Graph) -> Iterator[str]:
    """The sentence on a collective call that members have made, and this process has not.

    That of its own turn is compared in ``made_otherwise``.
    """
    wait = node.process["wait"]
    others: dict[str, list[object]] = {}
    for other in _members(wait, graph):
        theirs = other.process["wait"]
        first = _ahead(wait, theirs, _of_objects)
        if "on" in wait:
            first = first or _ahead(wait, theirs, _blocking)
        if first and first["number"] != theirs.get("turn"):
            others.setdefault(_at(first), []).append(other.name)
    for text, names in others.items():
        yield f" {listed(names, _SHOWN, 'others')} called {text}, and {node.name} did not."


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
    return [call for call in wait.get("made", ()) if call["number"] < _NONBLOCKING]


def _of_objects(wait: Mapping[str, Any]) -> list[Begun]:
    return [call for call in wait.get("made", ()) if call["number"] >= _OF_OBJECTS]


def _members(wait: Mapping[str, Any], graph: Graph) -> list[Node]:
    """The blocked processes whose calls are of the same group."""
    waits = [(node, node.process["wait"]) for node in graph.nodes.values()]
    key = wait.get("on") or _key(wait)
    if key is None:
        return []
    return [node for node, other in waits if other and key in (other.get("on"), _key(other))]


def _key(wait: Mapping[str, Any]) -> object:
    return (wait.get("group") or [None])[0]


def _is_other(one: str, two: str) -> bool:
    """Whether two texts show different calls; each process has its own name for the object."""
    return _method(one) != _method(two)


def _method(text: str) -> str:
    function, opened, arguments = text.partition("(")
    return function.rpartition(".")[2] + opened + arguments


def differ(blocked: Sequence[Node], graph: Graph) -> Iterator[str]:
    """The sentence on blocked members of a group that are in different calls of it.

    Not if a member has already been said to have called something else.
    """
    if any(True for node in blocked for _ in made_otherwise(node, graph)):
        return
    groups: dict[object, list[Node]] = {}
    for node in blocked:
        groups.setdefault(_key(node.process["wait"]), []).append(node)
    for key, members in groups.items():
        calls: dict[str, list[Node]] = {}
        for node in members:
            calls.setdefault(_method(_name(node)), []).append(node)
        if key is not None and len(calls) > 1:
            title = members[0].process["wait"]["group"][1]
            made = [f"{_are(same)} in {_name(same[0])}" for same in calls.values()]
            yield (
                f"All processes of {title} make the same collective calls in the same order, but "
                f"{listed(made, _SHOWN, 'more')}."
            )


def _name(node: Node) -> str:
    """The call without arguments: these may differ, such as the counts of a scatter."""
    wait = node.process["wait"]
    text = wait["open"][0]["text"] if "open" in wait else wait["purpose"]
    return str(text).partition("(")[0]


def _are(nodes: Sequence[Node]) -> str:
    names = [node.name for node in nodes]
    return f"{listed(names, _SHOWN, 'others')} {'is' if len(names) == 1 else 'are'}"


def opposite(blocked: Sequence[Node]) -> Iterator[str]:
    """The sentence on a process that waits for another one, which is in a call of another group."""
    pairs = [
        (first, other)
        for first in blocked
        for other in blocked
        if other.uid in first.needs and _are_of_two_groups(first, other)
    ]
    mutual = [pair for pair in pairs if pair[0].uid in pair[1].needs]
    rule = "a process in both must call them in the same order as the others"
    for first, other in (mutual or pairs)[:1]:
        one, two = (node.process["wait"] for node in (first, other))
        name, second = one["group"][1], two["group"][1]
        title, before = name, ""
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
    if None in (_key(one), _key(two)) or _key(one) == _key(two):
        return False
    return other.name in one.get("members", [other.name])
