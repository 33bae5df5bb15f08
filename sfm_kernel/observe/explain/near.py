"""Messages that nearly fit a blocked receive: what would have to be different."""

from __future__ import annotations

import ast
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

SHOWN = 3

_LONGEST = 40
"""Characters of a text that are shown (``LONGEST`` in native/src/summary.rs)."""


def near_misses(process: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages in a process's inbox that fit its receive best, see ``schema.json``, "near".

    Those that have at least one attribute in common with the template; the best come first, at
    most three. Values are compared as they are shown: of those that are not shown whole nothing is
    claimed, and of predicates only where there is no other reason.
    """
    return nearest(process)[:SHOWN]


def nearest(process: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same, all of them."""
    wait = process["wait"]
    if wait is None or not wait["template"]:
        return []
    found = []
    for message in candidates(process):
        names = {name for name, _ in message["attributes"]}
        if names.isdisjoint(_names(wait["template"])):
            continue
        if misses := _misses(wait["template"], message):
            found.append({"message": message, "misses": misses})
    found.sort(key=lambda one: len(one["misses"]))
    least = len(found[0]["misses"]) if found else 0
    return [one for one in found if len(one["misses"]) == least]


def candidates(process: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages that its receive looks at: those of its own context."""
    space = process["wait"]["space"]
    return [one for one in process["messages"] if one["space"] == space]


def fits(template: Sequence[Mapping[str, Any]], message: Mapping[str, Any]) -> bool:
    """Whether the message fits for certain; no predicate is tried."""
    has = dict(message["attributes"])
    return not any(one["predicate"] for one in template) and all(
        one["name"] in has and _equal(one["value"], has[one["name"]]) for one in template
    )


def _names(template: Sequence[Mapping[str, Any]]) -> set[str]:
    return {one["name"] for one in template}


def _misses(
    template: Sequence[Mapping[str, Any]], message: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Why the message does not fit, as far as that is certain."""
    has = dict(message["attributes"])
    different, asked, unknown = [], [], False
    for one in template:
        there = has.get(one["name"])
        equal = there is not None and (one["predicate"] or _equal(one["value"], there))
        miss = {"name": one["name"], "has": there, "wants": one["value"]}
        if equal is False:
            different.append(miss)
        elif one["predicate"]:
            asked.append(miss)
        unknown = unknown or equal is None
    return different or ([] if unknown or len(asked) != 1 else asked)


def _equal(wanted: str, there: str) -> bool | None:
    """Whether two values are equal, by their texts; None if that cannot be told from them."""
    if wanted == there:
        return True
    if there.startswith("<") or wanted.startswith("<"):  # described, not shown
        return None
    try:
        known = ast.literal_eval(wanted)
    except (ValueError, SyntaxError):  # cut, or an object
        return None
    if isinstance(known, str):
        shown = _shown(known)
        if there[0] not in "'\"" or there[1:-1] != shown:
            return False
        return True if shown == known else None
    try:
        return bool(known == ast.literal_eval(there))
    except (ValueError, SyntaxError):
        return None


def _shown(text: str) -> str:
    """A text as a segment shows it, without its quotes."""
    shown = "".join(" " if unicodedata.category(one) == "Cc" else one for one in text[:_LONGEST])
    return shown + ("…" if len(text) > _LONGEST else "")
