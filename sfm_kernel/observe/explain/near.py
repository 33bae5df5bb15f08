"""Messages that nearly fit a blocked receive, and their differences from its template."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from sfm_kernel._native import LIBRARY, SHOWN_CHARACTERS
from sfm_kernel.observe.explain.calls import as_receives
from sfm_kernel.observe.literals import literal

SHOWN = 3

SERVING = "serving"
"""The context of calls that one process makes of what another offers."""

_ALIKE = 0.75
"""The similarity of two names (0 to 1, difflib's ratio) from which one may be a typo of the
other."""


def near_misses(process: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages in a process's inbox that fit its receive best: "near" of ``schema.json``.

    A message qualifies if it shares an attribute's name with the template, or has one of a similar
    name; the best come first, at most three. Values are compared as they are shown: a predicate,
    and a value that is not fully shown, are named only if nothing else can be the difference.
    """
    return [near for receive in as_receives(process) for near in nearest(receive)][:SHOWN]


def nearest(process: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All messages that fit equally well; see ``near_misses``."""
    wait = process["wait"]
    if wait is None or not wait["template"]:
        return []
    return _nearest(wait["template"], candidates(process), process["settled"])


def nearest_apart(process: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same for messages of other communicators of MPI."""
    wait = process["wait"]
    if not wait["purpose"]:
        return []
    others = [
        message
        for message in process["messages"]
        if message["context"] and message["context_id"] != wait["context_id"]
    ]
    return _nearest(wait["template"], others)


def _nearest(
    template: Sequence[Mapping[str, Any]],
    messages: Sequence[Mapping[str, Any]],
    examined: bool = False,
) -> list[dict[str, Any]]:
    """``examined``: the receive has compared these messages, and none fits."""
    found = []
    for message in messages:
        if misses := _misses(template, message, examined):
            found.append({"message": message, "misses": misses})
    found.sort(key=lambda near: len(near["misses"]))
    least = len(found[0]["misses"]) if found else 0
    return [near for near in found if len(near["misses"]) == least]


def candidates(process: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages that a process's receive examines: those of its context."""
    context_id = process["wait"]["context_id"]
    return [message for message in process["messages"] if message["context_id"] == context_id]


def in_other_contexts(process: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages that would fit a process's receive, but lie in another context."""
    wait = process["wait"]
    return [
        message
        for message in process["messages"]
        if message["context_id"] != wait["context_id"]
        and message["context"] != SERVING
        and (message["context"] or (wait["template"] and not message["context_id"]))
        and fits(wait["template"], message)
    ]


def of_the_other(process: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages that would fit, but are SFM's where the receive is MPI's, or the reverse."""
    wait = process["wait"]
    of_mpi = "on" in wait
    if not wait["template"] or (not of_mpi and (wait["purpose"] or wait["context_id"])):
        return []
    conditions = [one for one in wait["template"] if one["name"] != "src"]  # names, or ranks
    return [
        message
        for message in process["messages"]
        if (_is_of_send(message, wait["peers"]) if of_mpi else _is_of_mpi(message))
        and fits(conditions, message)
    ]


def _is_of_send(message: Mapping[str, Any], peers: Sequence[Any] | None) -> bool:
    return not message["context_id"] and (peers is None or message["src"] in peers)


def _is_of_mpi(message: Mapping[str, Any]) -> bool:
    """Whether MPI has sent it: no other message lacks the name of its destination."""
    context, names = int(message["context_id"] or "0", 16), dict(message["attributes"])
    if not context or context & LIBRARY or "tag" not in names or "dest" in names:
        return False
    return message["context"] is None or message["context"].startswith("communicator ")


def fits(template: Sequence[Mapping[str, Any]], message: Mapping[str, Any]) -> bool:
    """Whether the message certainly fits; False if the template has a predicate."""
    has = dict(message["attributes"])
    return not any(condition["predicate"] for condition in template) and all(
        condition["name"] in has and _equal(condition["value"], has[condition["name"]])
        for condition in template
    )


def limit_by_name(wait: Mapping[str, Any]) -> str:
    """A limit of time that an SFM receive got as an attribute: ``timeout=2``; "" if none."""
    if not wait["purpose"]:  # MPI's
        for condition in wait["template"]:
            if condition["name"] == "timeout":
                return f"timeout={condition['value']}"
    return ""


def of_callback(process: Mapping[str, Any], template: Sequence[Any]) -> Mapping[str, Any]:
    """The process as if it waited for a message that this callback gets."""
    wait = {"template": template, "context_id": "", "purpose": "", "peers": None}
    return {**process, "wait": wait, "settled": False}  # some have come before it was registered


def regcb(template: Sequence[Mapping[str, Any]]) -> str:
    """A callback, as its registration: ``regcb(tag=1)``."""
    asked = (f"{condition['name']}={condition['value']}" for condition in template)
    return f"regcb({', '.join(asked)})"


def _misses(
    template: Sequence[Mapping[str, Any]], message: Mapping[str, Any], examined: bool
) -> list[dict[str, Any]]:
    """The certain reasons why the message does not fit; empty if it is unrelated or may fit."""
    has = dict(message["attributes"])
    names = [condition["name"] for condition in template]
    spare = [name for name in has if name not in ("src", "dest", *names)]
    if not any(name in has or _like(name, spare) for name in names):
        return []
    different: list[dict[str, Any]] = []
    asked: list[dict[str, Any]] = []
    unknown: list[dict[str, Any]] = []
    for condition in template:
        there = has.get(condition["name"])
        equal = there is not None and (condition["predicate"] or _equal(condition["value"], there))
        miss = {"name": condition["name"], "has": there, "wants": condition["value"]}
        if there is None and (like := _like(condition["name"], spare)):
            miss["like"] = like
        if equal is False:
            different.append(miss)
        elif condition["predicate"]:
            asked.append(miss)
        elif equal is None:
            unknown.append(miss)
    if different or (unknown and not examined):
        return different
    doubtful = [*asked, *unknown]
    return doubtful if len(doubtful) == 1 else []


def _like(name: str, names: Sequence[str]) -> str | None:
    """The one of these names that ``name`` may be a typo of."""
    if alike := difflib.get_close_matches(name, names, 1, _ALIKE):
        return alike[0]
    letters = sorted(name.lower())  # of a short name: two letters are swapped, or one is a capital
    return next((other for other in names if sorted(other.lower()) == letters), None)


def _equal(requested: str, there: str) -> bool | None:
    """Whether two values are equal, by their texts; None if the texts do not show it."""
    if requested == there:
        return True
    if there.startswith("<") or requested.startswith("<"):  # described, not shown
        return None
    try:
        known = literal(requested)
    except ValueError:  # cut, or an object
        return None
    if isinstance(known, str):
        shown = _shown(known)
        if there[:1] not in ("'", '"') or there[1:-1] != shown:
            return False
        return True if shown == known else None
    try:
        return bool(known == literal(there))
    except ValueError:
        return None


def _shown(text: str) -> str:
    """A text as a segment shows it, without its quotes."""
    letters = text[:SHOWN_CHARACTERS]
    shown = "".join(" " if unicodedata.category(letter) == "Cc" else letter for letter in letters)
    return shown + ("…" if letters != text else "")
