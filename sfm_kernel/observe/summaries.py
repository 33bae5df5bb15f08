"""The messages of an inbox, from their summary in a segment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sfm_kernel._native import SUMMARY_UNIT
from sfm_kernel.observe.waits import value_of

_COUNT = re.compile("[0-9]{1,18}")


def messages_of(summary: str | None, contexts: Mapping[str, str]) -> list[dict[str, Any]]:
    """The "messages" of ``schema.json``; ``contexts``: the names of contexts, by their ids."""
    # The last line may be cut before its first tab, and is dropped.
    lines = (summary or "").split("\n")
    return [_message(line, contexts) for line in lines if "\t" in line]


def _message(line: str, contexts: Mapping[str, str]) -> dict[str, Any]:
    context_id, nbytes, *pairs = line.split("\t")
    attributes = [pair.split(SUMMARY_UNIT, 1) for pair in pairs if SUMMARY_UNIT in pair]
    src = next((value for name, value in attributes if name == "src"), None)
    return {
        "src": None if src is None else value_of(src),
        "context_id": "" if context_id == "0" else context_id,
        "context": contexts.get(context_id),
        "bytes": int(nbytes) if _COUNT.fullmatch(nbytes) else 0,
        "attributes": attributes,
    }
