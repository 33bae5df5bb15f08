"""The state in a process's segment: its fields, and the checks of their values.

The fields and their types are in ``schema.json``, "segment". An observer that reads a segment
checks it, since any program of the user may have written there; an observer that receives a state
from another machine checks it as well. The checks are built from the schema, so a field that is
added there is checked, and sent to other machines, without further code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sfm_kernel._native import UNSETTLED

State = dict[str, Any]
"""The state in one process's segment; its fields are in ``FIELDS``."""

SCHEMA: dict[str, Any] = json.loads(
    Path(__file__).with_name("schema.json").read_text(encoding="utf-8")
)


class RemoteStates(list[State]):
    """The states of processes on other machines.

    Attributes:
        gateways: the gateways of their world: "uid", "site", "address", "name" of each, and its
            last "report".
    """

    gateways: Sequence[Mapping[str, Any]] = ()


def unknown(uid: str, **known: Any) -> State:
    """The state of a process about which only ``known`` is known."""
    texts = dict.fromkeys(("waits", "facts", "others", "info", "summary", "code"))
    counts = dict.fromkeys(("call", "line", "depth", "bytes", "sent", "received", "arrived"), 0)
    times = {"since": 0.0, "until": 0.0, "looked": 0.0}
    rest: State = {"uid": uid, "examined": UNSETTLED, "peers": [], "polls": None, "main": None}
    return {**texts, **counts, **times, **rest, **known}


def damaged(uid: str, alive: bool) -> State:
    """The state of a process whose segment cannot be read."""
    # One entry for all its peers together, which proves nothing about any of them.
    peers = [("", 0, 0, 0, 0)]
    return unknown(uid, alive=alive, state="damaged", others="", peers=peers)


def are_sound(state: State) -> bool:
    """Whether the texts in a segment are valid.

    The other fields are numbers that the core has read, so their types are right.
    """
    return all(
        FIELDS[field](state[field])
        for field in ("info", "facts", "others", "code", "summary", "polls", "main")
    )


def check(state: Any) -> None:
    """Raise ValueError unless ``state`` has the fields of a state, each of the right type."""
    if not isinstance(state, dict) or state.keys() != FIELDS.keys():
        raise ValueError(f"a state has {', '.join(FIELDS)}")
    for field, is_right in FIELDS.items():
        if not is_right(state[field]):
            raise ValueError(f"a state's {field} cannot be {str(state[field])[:40]!r}")


def parse(text: str | None) -> dict[str, Any]:
    """The object in a segment's text; empty if the text was being written, or is cut.

    The result is shared: do not change it.
    """
    found = _loaded(text)
    return found if isinstance(found, dict) else {}


def parse_others(text: str | None) -> list[Any] | None:
    """The list in ``others``; None if the text was being written, or is cut."""
    found = _loaded(text) if text else []
    return found if isinstance(found, list) else None


@lru_cache(1024)
def _loaded(text: str | None) -> Any:
    try:
        found = json.loads(text or "{}")
        json.dumps(found, ensure_ascii=False).encode()  # no halves of characters
    except (ValueError, RecursionError):
        return {}
    return found


# ---- checks that are built from the schema: the subset of JSON Schema that segments need ----

_Check = Callable[[Any], bool]


def made_of(schema: Mapping[str, Any]) -> _Check:
    """The check whether a value is valid by a schema; its references are into ``schema.json``.

    Raises ValueError on a keyword that no check is built from.
    """
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    words = set().union(*(_KINDS[kind][1] for kind in types))
    if unknown := schema.keys() - words - _KEYWORDS.keys() - {"type", *_REMARKS}:
        raise ValueError(f"no check is made of {', '.join(unknown)} in {schema}")
    checks = [_either([_KINDS[kind][0](schema) for kind in types])] if types else []
    checks += [make(schema) for word, make in _KEYWORDS.items() if word in schema]
    return _both(checks)


_REMARKS = ("description", "contentMediaType")


def _both(checks: Sequence[_Check]) -> _Check:
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)
    return lambda value: all(is_right(value) for is_right in checks)


def _either(checks: Sequence[_Check]) -> _Check:
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) or second(value)
    return lambda value: any(is_right(value) for is_right in checks)


def _integer(schema: Mapping[str, Any]) -> _Check:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return lambda value: type(value) is int and least <= value <= most


def _number(schema: Mapping[str, Any]) -> _Check:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return lambda value: (
        type(value) in (int, float) and math.isfinite(value) and least <= value <= most
    )


def _string(schema: Mapping[str, Any]) -> _Check:
    most = schema.get("maxLength", math.inf)
    return lambda value: isinstance(value, str) and len(value) <= most


def _array(schema: Mapping[str, Any]) -> _Check:
    """By "prefixItems" for the first, and "items" for the rest."""
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    first = [made_of(item) for item in schema.get("prefixItems", ())]
    start, rest = len(first), made_of(schema["items"]) if "items" in schema else None

    def is_right(value: Any) -> bool:
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= most:
            return False
        for is_item, item in zip(first, value, strict=False):
            if not is_item(item):
                return False
        return rest is None or all(rest(item) for item in value[start:])

    return is_right


def _object(schema: Mapping[str, Any]) -> _Check:
    fields = {name: made_of(field) for name, field in schema.get("properties", {}).items()}
    required, more = set(schema.get("required", ())), schema.get("additionalProperties", True)
    others = made_of(more) if isinstance(more, dict) else lambda value: bool(more)

    def is_right(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required <= value.keys()
            and all(fields.get(name, others)(item) for name, item in value.items())
        )

    return is_right


_KINDS: dict[str, tuple[Callable[[Mapping[str, Any]], _Check], set[str]]] = {
    "null": (lambda schema: lambda value: value is None, set()),
    "boolean": (lambda schema: lambda value: type(value) is bool, set()),
    "integer": (_integer, {"minimum", "maximum"}),
    "number": (_number, {"minimum", "maximum"}),
    "string": (_string, {"maxLength"}),
    "array": (_array, {"prefixItems", "items", "minItems", "maxItems"}),
    "object": (_object, {"properties", "required", "additionalProperties"}),
}
"""For each type its check, and the keywords that concern its values alone and belong to it."""


def _of_reference(schema: Mapping[str, Any]) -> _Check:
    return made_of(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")])


def _of_values(schema: Mapping[str, Any]) -> _Check:
    values = schema["enum"]
    return lambda value: isinstance(value, str | None) and value in values


def _of_one(schema: Mapping[str, Any]) -> _Check:
    return _either([made_of(choice) for choice in schema["oneOf"]])  # no value is valid by two


def _of_pattern(schema: Mapping[str, Any]) -> _Check:
    pattern = re.compile(schema["pattern"])
    fits = lru_cache(1024)(lambda text: bool(pattern.fullmatch(text)))
    return lambda value: not isinstance(value, str) or fits(value)


def _of_content(schema: Mapping[str, Any]) -> _Check:
    """The check of the JSON in a text. A text that was being written, or is cut, is valid."""
    content = schema["contentSchema"]
    container: type = {"array": list, "object": dict}[content["type"]]
    is_right = made_of(content)

    def holds(text: str) -> bool:
        found = _loaded(text)
        return not found or not isinstance(found, container) or is_right(found)

    known = lru_cache(1024)(holds)
    return lambda value: not isinstance(value, str) or known(value)


_KEYWORDS: dict[str, Callable[[Mapping[str, Any]], _Check]] = {
    "$ref": _of_reference,
    "enum": _of_values,
    "oneOf": _of_one,
    "pattern": _of_pattern,
    "contentSchema": _of_content,
}

FIELDS: dict[str, _Check] = {
    field: made_of(schema) for field, schema in SCHEMA["$defs"]["segment"]["properties"].items()
}
"""For each field of a state the check whether a value is valid."""
