"""Sentences about messages that lie in inboxes: they nearly fit, fit another process, or nobody
receives them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sfm_kernel.observe.explain.alone import waits_for_lock
from sfm_kernel.observe.explain.but_for import listed
from sfm_kernel.observe.explain.graph import Graph, Node
from sfm_kernel.observe.explain.near import (
    SERVING,
    candidates,
    fits,
    in_other_contexts,
    nearest,
    nearest_apart,
    of_callback,
    of_the_other,
    regcb,
)
from sfm_kernel.observe.explain.rounds import attributes_text

_DIFFERENCES = 4
"""Differences between messages and a template that a sentence lists, and contexts."""


def _or(names: Iterable[object]) -> str:
    return listed(dict.fromkeys(names), _DIFFERENCES, "others", "or")


def unreceived(node: Node, graph: Graph) -> Iterator[str]:
    """Sentences on messages of a process that lie where nobody receives any more."""
    for uid in sorted(node.needs & graph.nodes.keys()):
        other = graph.nodes[uid]
        messages = other.process["messages"] if other.kind in ("idle", "cell") else ()
        found = [one for one in messages if not one["context_id"] and one["src"] == node.name]
        if len(found) == 1:
            about = attributes_text(found[0]["attributes"])
            shown = f" ({about})" if about else ""
            yield f" Its message{shown} lies in {other.name}'s inbox, unreceived."
        elif found:
            yield f" {len(found)} of its messages lie in {other.name}'s inbox, unreceived."


def nearly(process: Mapping[str, Any]) -> Iterator[str]:
    """The sentence on messages that a receive has missed by little."""
    holds = f" {process['name']}'s inbox holds"
    if others := of_the_other(process):
        about = attributes_text(others[0]["attributes"])
        whose = "send()" if "on" in process["wait"] else "MPI"
        rule = "what MPI sends is received by MPI alone, and what send() sends by recv()"
        yield f"{holds} a message of {whose} ({about}): {rule}."
        return
    if apart := in_other_contexts(process):
        yield f"{holds} {_apart(apart, process['wait'])}."
        return
    near = nearest(process)
    if near and len(process["messages"]) < process["depth"]:  # not all are shown
        yield (
            f"{holds} {process['depth']} messages, and at least {len(near)} nearly {_fit(near)}: "
            f"{_differences(near)}."
        )
    elif near:
        messages = "message" if len(near) == 1 else "messages"
        yield f"{holds} {len(near)} {messages} that nearly {_fit(near)}: {_differences(near)}."
    elif elsewhere := nearest_apart(process):
        messages = "1 message that nearly fits, but lies"
        if len(elsewhere) > 1:
            messages = f"{len(elsewhere)} messages that nearly fit, but lie"
        where = _or(near["message"]["context"] for near in elsewhere)
        yield f"{holds} {messages} in {where}: {_differences(elsewhere)}."


def unfit(process: Mapping[str, Any]) -> Iterator[str]:
    holds = f" {process['name']}'s inbox holds"
    if not process["settled"]:
        return
    if len(process["messages"]) < process["depth"]:  # not all are shown
        yield f"{holds} {process['depth']} messages, and none fits."
    elif (count := len(candidates(process))) == 1:
        yield f"{holds} 1 message, which does not fit."
    elif count:
        yield f"{holds} {count} messages, and none fits."


def unanswered(process: Mapping[str, Any]) -> Iterator[str]:
    """The sentence on calls of what a process offers, which it does not answer."""
    found = dict.fromkeys(one["src"] for one in process["messages"] if one["context"] == SERVING)
    if found:
        verb = "calls" if len(found) == 1 else "call"
        when = "between cells" if process["kind"] == "engine" else "in serving.serve()"
        names, name = listed(found, _DIFFERENCES, "others"), process["name"]
        yield f" {names} {verb} what {name} offers, and {name} answers only {when}."


def near_callbacks(process: Mapping[str, Any]) -> Iterator[str]:
    """Sentences on messages that nearly fit a callback, or came before it was registered."""
    for template in process["callbacks"]:
        early = [
            one
            for one in process["messages"]
            if not one["context_id"] and template and fits(template, one)
        ]
        if early and (process["settled"] or waits_for_lock(process)):
            came = "1 message that fits" if len(early) == 1 else f"{len(early)} messages that fit"
            yield (
                f" {process['name']}'s inbox holds {came} callback {regcb(template)}, but came "
                "before it was registered."
            )
            continue
        if near := nearest(of_callback(process, template)):
            messages = "1 message" if len(near) == 1 else f"{len(near)} messages"
            yield (
                f" {process['name']}'s inbox holds {messages} that nearly {_fit(near)} callback "
                f"{regcb(template)}: {_differences(near)}."
            )


def _apart(found: Sequence[Mapping[str, Any]], wait: Mapping[str, Any]) -> str:
    contexts = dict.fromkeys(message["context"] for message in found)
    if wait["purpose"]:  # MPI's
        texts = [str(context) for context in contexts]
    else:
        texts = ["no context" if name is None else f"context {name!r}" for name in contexts]
    fitting = "1 message that would fit, but lies"
    if len(found) > 1:
        fitting = f"{len(found)} messages that would fit, but lie"
    return f"{fitting} in {_or(texts)}"


def _fit(found: Sequence[object]) -> str:
    return "fits" if len(found) == 1 else "fit"


def _differences(near: Sequence[Mapping[str, Any]]) -> str:
    different = list(dict.fromkeys(_difference(message) for message in near))
    if len(different) > _DIFFERENCES + 1:
        different[_DIFFERENCES:] = [f"and {len(different) - _DIFFERENCES} more"]
    return "; ".join(different)


def _difference(near: Mapping[str, Any]) -> str:
    found = []
    for miss in near["misses"]:
        if "like" in miss:
            found.append(f"it has {miss['like']}, not {miss['name']}")
        elif miss["has"] is None:
            found.append(f"it has no {miss['name']}")
        elif miss["wants"].startswith("<"):
            found.append(f"{miss['name']} is {miss['has']}, which {miss['wants']} does not accept")
        else:
            found.append(f"{miss['name']} is {miss['has']}, not {miss['wants']}")
    return ", and ".join(found)


def misdirected(graph: Graph) -> Iterator[str]:
    """Sentences on messages that fit one process's receive, but lie in another one's inbox."""
    for node in graph.blocked():
        wait = node.process["wait"]
        if wait["kind"] != "recv" or not wait["template"]:
            continue
        for other in graph.processes:
            if other["uid"] == node.uid:
                continue
            found = [
                message
                for message in other["messages"]
                if message["context_id"] == wait["context_id"] and fits(wait["template"], message)
            ]
            if found:
                src = found[0]["src"]
                yield (
                    f"A message that would fit {node.name}'s receive lies in {other['name']}'s "
                    f"inbox: {src} sent it there."
                )
