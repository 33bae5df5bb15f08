"""A run as one HTML file, which a browser shows without Jupyter and without a network.

listing the code that ran: listings of cells and files
page    the file: HTML, with the script and the style sheet in it
page.js, page.css: the panel's timeline and graph; `make labextension` builds them, and
states.json, which has the colours of states for the drawings of ``timeline``
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfm_kernel.observe.explain import Graph, diagnose, explain
from sfm_kernel.observe.record.listing import Sources, lines_of_files, listings
from sfm_kernel.observe.snapshot import Remote, folder_of, snapshot
from sfm_kernel.observe.timeline import Timeline, timeline

if TYPE_CHECKING:
    from sfm_kernel.observe.record.page import Facts

__all__ = ["ProvenDeadlock", "record"]


@dataclass(frozen=True)
class ProvenDeadlock:
    """A deadlock that was proven during the run: its time (s since 1970) and its explanation."""

    time: float
    text: str


def record(
    world: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    name: str = "",
    deadlocks: Sequence[ProvenDeadlock] = (),
    sources: Sources = lines_of_files,
    cells: Sequence[Mapping[str, Any]] = (),
    facts: Facts | None = None,
    remote: Remote | None = None,
    run: Timeline | None = None,
    output: str = "",
    patience: float = 0.0,
) -> list[str]:
    """Write a world's last run into an HTML file, for readers without Jupyter.

    The file has the results of ``timeline``, ``explain`` and ``snapshot`` for this world, and the
    code of the lines that they name. It has nothing of other worlds, and only the parts of messages
    that the timeline shows. Texts of programs and messages are escaped, and the file forbids
    browsers to load anything.

    Args:
        world: its folder on this machine, or an endpoint in it.
        path: the file; an existing one is replaced atomically.
        title, name: the run's title, and its author; shown at the top.
        deadlocks: deadlocks that were proven during the run; those of earlier runs are left out.
        sources: gives the code at a location, see ``listing``.
        cells: locations (line 0 suffices) whose code is shown even if no event names it.
        facts: about the machine, see ``page``.
        remote: gives the processes on other machines, see ``explain``.
        run: the timeline to show, from a recorder that has followed the run; without it, the
            timeline is read from the processes' traces. With it the world may have ended.
        output: the last part of what the processes have printed.
        patience: as for ``explain``.
    Returns:
        Sentences on what was left out of the file, mostly code that was too long; often none.
    Raises:
        FileNotFoundError: there is no such world, or no such folder for the file.
        OSError: the file cannot be written.
    """
    from sfm_kernel.observe.record.page import page  # observers that record nothing skip it

    folder = folder_of(world)
    try:
        diagnosis = explain(world, patience, remote)
        seen = snapshot(folder, remote(False) if remote else ())
    except FileNotFoundError:
        if run is None:
            raise
        diagnosis, seen = _ended(run)
    if not any(process["alive"] for process in seen["processes"]):
        diagnosis = {**diagnosis, "title": "All processes have ended"}
    shown = run or timeline(folder)
    locations = [*_locations(shown.data, diagnosis, seen), *cells]
    code, notes = listings(locations, sources)
    if away := [str(process["name"]) for process in seen["processes"] if not process["here"]]:
        notes.append(
            f"The timeline has no events of {', '.join(away)}: from other machines it is known "
            "what processes do now, not what they did."
        )
    since = shown.data["begin"]
    text = page(
        title=title,
        name=name,
        deadlocks=[deadlock for deadlock in deadlocks if deadlock.time >= since],
        run=shown,
        diagnosis=diagnosis,
        snapshot=seen,
        output=output,
        code=code,
        notes=notes,
        facts=facts,
    )
    _write(path, text)
    return notes


def _ended(run: Timeline) -> tuple[dict[str, Any], dict[str, Any]]:
    """The diagnosis and the snapshot of a world that has ended, from its last run."""
    world, now = run.data["world"], time.time()
    seen = {"world": world, "time": now, "processes": [], "sites": [], "links": []}
    return diagnose(Graph(seen, {}), world), seen


def _locations(
    run: Mapping[str, Any], diagnosis: Mapping[str, Any], seen: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """The code locations of this run, the most important ones first."""
    # A process that is in no call has the location of its last call, perhaps of an earlier run.
    calls = [*seen["processes"], *run["spans"]]
    found = [call["where"] for call in calls if call["state"].startswith("blocked")]
    judgements = diagnosis["processes"]
    found += [judged["where"] for judged in judgements if judged["verdict"] != "idle"]
    found += [flight[end] for flight in run["flights"] for end in ("sent_at", "received_at")]
    return [location for location in found if location is not None]


def _write(path: str | os.PathLike[str], text: str) -> None:
    target = os.fspath(path)
    beside = f"{target}.{os.getpid()}.part"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, target)
    except BaseException:
        if os.path.exists(beside):
            os.remove(beside)
        raise
