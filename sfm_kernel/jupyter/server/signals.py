"""Interrupts processes of a world, and never anybody else."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sfm_kernel.directory import signals
from sfm_kernel.errors import SFMError

Elsewhere = Callable[[str], None]
"""Interrupts a process of another machine, by its uid; raises SFMError, which says why not."""


class NotInterrupted(Exception):
    """Some processes could not be interrupted; tells which, and why."""


def interrupt(
    folder: str,
    processes: Sequence[dict[str, Any]],
    uids: Collection[str] | None,
    elsewhere: Elsewhere | None = None,
) -> list[str]:
    """Send SIGINT, as a notebook's Stop button does; returns the uids of who got it.

    Args:
        folder: the world's folder.
        processes: those of the world's snapshot.
        uids: whom to interrupt. None: all who compute or are blocked, but for notebooks, whose
            cells end with those of their engines.
        elsewhere: interrupts those of other machines.
    Raises:
        NotInterrupted: somebody did not get it. All others did.
    """
    if uids is None:
        busy = [one for one in processes if one["alive"] and one["state"] != "idle"]
        chosen = [one for one in busy if one["kind"] != "notebook" or one["state"] in _OWN_CALLS]
        problems = []
    else:
        chosen = [one for one in processes if one["uid"] in uids]
        unknown = set(uids) - {one["uid"] for one in chosen}
        problems = [f"{uid} is no process of this world (any more)" for uid in sorted(unknown)]
    done = []
    for one in chosen:
        if problem := _interrupt(folder, one, elsewhere):
            problems.append(problem)
        else:
            done.append(one)
    if problems:
        names = ", ".join(str(one["name"]) for one in done)
        raise NotInterrupted("; ".join(problems) + (f". Interrupted: {names}" if names else ""))
    return [one["uid"] for one in done]


_OWN_CALLS = ("blocked in recv", "blocked in send", "blocked in collective")


def _interrupt(folder: str, process: dict[str, Any], elsewhere: Elsewhere | None) -> str:
    """Why it did not get the signal; empty if it did."""
    name, pid = str(process["name"]), process["pid"]
    if not process["here"] and elsewhere is not None:
        try:
            elsewhere(process["uid"])
        except SFMError as problem:
            return f"{name} on {process['host']}: {problem}"
        return ""
    if not process["here"]:
        return (
            f"{name} runs on {process['host']}, which cannot be reached from here: "
            f"press Stop in the notebook that uses it"
        )
    segment = os.path.join(folder, f"{process['uid']}.seg")
    return signals.interrupt(segment, pid if process["alive"] else None, name)
