"""How many engines of a world do what, for lists of worlds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def counts_of(processes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The counts of the schema's ``world``; notebooks, and who has left, do not count."""
    members = (process for process in processes if process["state"] != "left")
    engines = [process for process in members if process["kind"] != "notebook"]
    states = [engine["state"] if engine["alive"] else "ended" for engine in engines]
    return {
        "engines": len(states),
        "running": states.count("running"),
        "blocked": sum(state.startswith("blocked") for state in states),
        "ended": states.count("ended"),
    }
