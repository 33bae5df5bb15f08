"""What a blocked call waits for, from the facts that it publishes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sfm_kernel.observe.code_locations import code_location
from sfm_kernel.observe.literals import literal


def wait_of(
    facts: Mapping[str, Any], text: str | None, until: float = 0.0
) -> dict[str, Any] | None:
    """The "wait" of ``schema.json``; None without facts."""
    if not facts:
        return None
    peers, every = facts.get("peers"), facts.get("all", False)
    if facts["kind"] == "send":
        peers = [value_of(facts["peer"])]
    return {
        "kind": facts["kind"],
        "text": text or "",
        "template": template_of(facts.get("template", ())),
        "peers": peers,
        "all": every,
        "until": until or None,
        "context_id": facts.get("context_id", ""),
        "purpose": facts.get("purpose", ""),
        "group": facts.get("group"),
        **_details(facts),
    }


def template_of(conditions: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "value": value, "predicate": predicate}
        for name, value, predicate in conditions
    ]


def _details(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What a call of MPI also tells about itself."""
    details = {key: facts[key] for key in ("on", "members", "turn", "count") if key in facts}
    codes = dict(enumerate(facts.get("codes", ())))
    if "made" in facts:
        details["made"] = [
            {"text": text, "where": code_location(codes.get(code), line), "number": number}
            for number, text, code, line in facts["made"]
        ]
    if "open" in facts:
        details["open"] = [
            {"text": text, "where": code_location(codes.get(code), line)}
            | ({} if asked is None else {"context_id": context, "template": template_of(asked)})
            for text, code, line, context, asked in facts["open"]
        ]
    return details


# Most texts are those of the last snapshot.
@lru_cache(1024)
def value_of(text: str) -> Any:
    """A name, from Python's notation."""
    try:
        found = literal(text)
    except ValueError:
        return text
    return found if isinstance(found, (str, int)) else text
