"""What a cell says after the Stop button has ended it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from sfm_kernel.directory import Member, Name
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.inspection import idle
from sfm_kernel.observe.explain.together import merged
from sfm_kernel.observe.explain.words import names as listed

PATIENCE = 1.0
"""Seconds that engines have to end their cell."""


def sentences(
    home: Home, waited: Mapping[Name, str], unfinished: Callable[[], Sequence[Member]]
) -> str:
    """The calls in which engines were, and the engines that still run.

    Args:
        waited: the call in which each engine was blocked.
        unfinished: the engines whose answer has not come.
    """
    said = merged((name, f"{name} was in {call}") for name, call in waited.items())
    lines = ["the cell was interrupted", *(f"{listed(names)} {text}" for names, text in said)]
    if left := _running(home, unfinished):
        verb, pronoun = ("is", "it") if len(left) == 1 else ("are", "them")
        restart = f"%sfm restart {' '.join(map(str, left))}"
        lines.append(f"{listed(left)} {verb} still running! `{restart}` ends {pronoun}")
    return ". ".join(lines)


def _running(home: Home, unfinished: Callable[[], Sequence[Member]]) -> list[Name]:
    """The engines that do not end their cell in time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        ended = idle(home)  # their answers may be on the way
        left = [member.name for member in unfinished() if member.name not in ended]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)
