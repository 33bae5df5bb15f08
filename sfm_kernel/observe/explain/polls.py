"""Processes that poll: they ask again and again for a message that does not come.

They are not blocked, and nobody knows what they do between two calls: no process that polls is
called stuck, and none because of it. But it waits, as a blocked receive does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sfm_kernel.observe.code_locations import words

Process = Mapping[str, Any]

_MEETS = re.compile("(accept|connect)$", re.IGNORECASE)
_MEETS_WHOM = {
    "accept": "no process has connected to its port",
    "connect": "the process that opened the port has not accepted",
}
"""MPI's calls that wait for processes which nobody may know yet; they ask again and again."""


def as_receive(process: Process) -> Process:
    """The process as if it were blocked in a receive of the message that it polls for."""
    polls = process["polls"]
    if polls is None:
        return process
    about = {key: polls[key] for key in ("since", "wait", "where")}
    return {**process, **about, "state": "blocked in recv", "settled": True, "polls": None}


def as_other(process: Process) -> dict[str, Any]:
    """The calls of a process that polls, as the "other" of ``schema.json``."""
    polls = process["polls"]
    return {"kind": "polls", "name": _text(polls["wait"]), "where": polls["where"], "cell": None}


def sentence(process: Process, time: float) -> str:
    """The call that the process polls, how often and how long; ``time``: the snapshot's."""
    polls = process["polls"]
    location = words(polls["where"])
    times = "once" if polls["count"] == 1 else f"{polls['count']:,} times".replace(",", " ")
    seconds = max(0.0, time - polls["since"])
    lasted = f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    call, at_line = _text(polls["wait"]), f" in {location}" if location else ""
    if found := _MEETS.search(call.partition("(")[0]):
        end = _MEETS_WHOM[found[0].lower()]
        return f"{process['name']} has waited in {call}{at_line} for {lasted}: {end}."
    return (
        f"{process['name']} polls {call}{at_line}: "
        f"{times} in {lasted}, and nothing that fits has come."
    )


def _text(wait: Mapping[str, Any]) -> str:
    """The text of the call; with its template if it is MPI's, whose text has none."""
    text, template = str(wait["text"]), wait["template"]
    if not wait["purpose"] or not template or "=" in text:
        return text
    asked = ", ".join(f"{condition['name']}={condition['value']}" for condition in template)
    return f"{text} for {asked}"
