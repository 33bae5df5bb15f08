"""The ends of cells and of processes, as observers show them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sfm_kernel.observe.code_locations import code_location

END = ".end"
"""The ending of a file beside the segment of a process that has ended, in which its supervisor has
left how, in words that follow the process's name."""

_LENGTH = 500


def failed(state: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any] | None:
    """The "failed" of ``schema.json``: the error that ended an idle engine's latest cell."""
    if not state["alive"] or state["state"] != "idle":
        return None
    match about.get("failed"):
        case [str(error), (str() | None) as code, int(line)]:
            return {"error": error, "where": code_location(code, line)}
    return None


def end(state: Mapping[str, Any], folder: str) -> str | None:
    """How a dead process has ended; None if nobody on this machine has left word."""
    if state["alive"] or state["state"] == "left":
        return None
    try:
        with open(os.path.join(folder, state["uid"] + END), errors="replace") as file:
            return file.read(_LENGTH) or None
    except OSError:
        return None
