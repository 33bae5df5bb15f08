"""Sentences about processes that are in no call of this package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel.observe.code_locations import words
from sfm_kernel.observe.links import over

Process = Mapping[str, Any]

_DOES = {
    "computes": ("computes", "compute"),
    "input": ("waits for input", "wait for input"),
    "lock": ("waits for a lock", "wait for locks"),
    "sleep": ("sleeps", "sleep"),
    "child": ("waits for a process that it has started", "wait for processes they have started"),
    "system": ("waits for a file, a pipe or the network", "wait for files, pipes or the network"),
    "native": ("is in a C function that holds the GIL", "are in C functions that hold the GIL"),
    "stopped": ("is stopped", "are stopped"),
    "unseen": ("is not seen", "are not seen"),
}
"""The words for one process, and for several."""


def does(process: Process) -> str:
    """The activity of its main thread ("now" of ``schema.json``), or "computes"; or "unseen"."""
    if process["unseen"] is not None:
        return "unseen"
    return str((process["now"] or {"does": "computes"})["does"])


def verb(processes: Iterable[Process], adverb: str = "") -> str:
    """The processes' common activity in words; if they differ, that they compute, as all do."""
    found = [does(process) for process in processes]
    activity = found[0] if len(set(found)) == 1 else "computes"
    first, _, rest = _DOES[activity][len(found) > 1].partition(" ")
    order = (first, adverb, rest) if first in ("is", "are") else (adverb, first, rest)
    return " ".join(filter(None, order))  # "is still stopped", "still sleeps"


def sentence(process: Process) -> str:
    """The process's activity and its line, and the line of its last call."""
    activity = does(process)
    if process["kind"] == "notebook" and activity == "computes":
        return f"{process['name']} runs a cell."  # a notebook that asks does that, too
    now = words(process["now"]["where"]) if process["now"] else ""
    has_called = process["sent"] or process["received"]
    last = words(process["where"]) if has_called else ""
    text = f"{process['name']} {_DOES[activity][0]}{f' in {now}' if now else ''}"
    return f"{text}; its last call was in {last}." if last and last != now else f"{text}."


def stopped(process: Process) -> str:
    """A stopped process, and the line it is stopped in."""
    location = words(process["where"])
    text = f"{process['name']} is stopped (SIGSTOP){f' in {location}' if location else ''}"
    return f"{text}, and does nothing until somebody continues it."


def unseen(process: Process, now: float) -> str:
    """A process that nobody sees now: for how long, and what it did when it was last seen."""
    name, was = process["name"], process["was"]
    location = words(was["where"])
    at_line = f" in {location}" if location else ""
    text = (
        f"{name} has not been seen for {max(0.0, now - process['unseen']):.0f} s: nobody on its "
        f"machine tells what it does (its relay has ended, or that machine is cut off)."
    )
    if was["state"] == "idle":
        return f"{text} It was idle then."
    if was["state"].startswith("blocked"):
        return f"{text} It waited for {was['waits'] or 'something'}{at_line} then."
    return f"{text} Its last call then was{at_line}." if at_line else text


def unreachable(processes: Iterable[Process], now: float) -> Iterable[str]:
    """A sentence for each unreachable process: for how long, and what that means."""
    for process in processes:
        if process["unreachable"] is not None:
            seconds = max(0.0, now - process["unreachable"])
            why = process["unreachable_why"] or "its machine, or the network to it, is down"
            yield (
                f"{process['name']} has been unreachable for {seconds:.0f} s: {why}; "
                f"it may still be alive. Messages to it are kept, and arrive when it answers "
                f"(SFM_UNREACHABLE sets a limit)."
            )


def links_in_trouble(
    pairs: Iterable[tuple[Process, Process]], links: Iterable[Mapping[str, Any]]
) -> Iterable[str]:
    """Sentences about troubled links between the sites of processes that wait for each other.

    ``pairs``: a process that waits, and one that it waits for.
    """
    links, waits = list(links), {}
    for process, other in pairs:
        if None not in (process["site"], other["site"]) and process["site"] != other["site"]:
            wait = f"{process['name']} waits for {other['name']} at another site"
            waits[process["site"], other["site"]] = wait
    said: set[str] = set()
    for (site, other_site), wait in waits.items():
        found = [text for text in over(links, site, other_site) if text not in said]
        said |= set(found)
        yield from (f"{wait}: {text}." for text in found)
