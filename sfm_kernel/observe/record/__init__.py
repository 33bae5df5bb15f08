"""The picture of a run as one file, which a browser shows without Jupyter and without a network.

listing the code that ran: listings of cells and files
page    the file: HTML, with the script and the style sheet in it
page.js, page.css: the panel's own timeline and graph; `make labextension` builds them, and
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

__all__ = ["Told", "record"]


@dataclass(frozen=True)
class Told:
    """A deadlock that was proven while the run went on: when (s since 1970), in which words."""

    time: float
    text: str


def record(
    world: Any,
    path: str | os.PathLike[str],
    *,
    title: str = "",
    name: str = "",
    told: Sequence[Told] = (),
    sources: Sources = lines_of_files,
    cells: Sequence[Mapping[str, Any]] = (),
    facts: Facts | None = None,
    remote: Remote | None = None,
    run: Timeline | None = None,
    patience: float = 0.0,
) -> list[str]:
    """Write the picture of a world's last run into an HTML file, for who has no Jupyter.

    It holds what ``timeline``, ``explain`` and ``snapshot`` tell of this world, and the code of the
    lines that these name: nothing of other worlds, and no more of messages than the timeline shows.
    Texts of programs and messages are escaped, and the file forbids browsers to load anything.

    Args:
        world: its folder on this machine, or an endpoint in it.
        path: the file; one that is there is replaced, and is whole at any moment.
        title, name: what it is, and whose; shown on top.
        told: deadlocks that were proven during the run; those of earlier runs are left out.
        sources: gives the code of a place, see ``listing``.
        cells: places (line 0 will do) whose code is shown although no event names it.
        facts: about the machine, see ``page``.
        remote: gives the processes on other machines, see ``explain``.
        run: the timeline to show, from a recorder that has followed the run; without it, what the
            processes still know. With it the world may be gone.
        patience: as for ``explain``.
    Returns:
        Sentences on what is not in the file, code mostly, since there was too much; often none.
    Raises:
        FileNotFoundError: there is no such world, or no such folder for the file.
        OSError: the file cannot be written.
    """
    from sfm_kernel.observe.record.page import page  # who only observes does without

    folder = folder_of(world)
    try:
        diagnosis = explain(world, patience, remote)
        seen = snapshot(folder, remote(False) if remote else ())
    except FileNotFoundError:
        if run is None:
            raise
        diagnosis, seen = _ended(run)
    shown = run or timeline(folder)
    places = [*_places(shown.data, diagnosis, seen), *cells]
    code, notes = listings(places, sources)
    if away := [str(one["name"]) for one in seen["processes"] if not one["here"]]:
        notes.append(
            f"The timeline has no events of {', '.join(away)}: processes on other machines tell "
            "what they do now, not what they did."
        )
    since = shown.data["begin"]
    text = page(
        title=title,
        name=name,
        told=[one for one in told if one.time >= since],
        picture=shown,
        diagnosis=diagnosis,
        snapshot=seen,
        code=code,
        notes=notes,
        facts=facts,
    )
    _write(path, text)
    return notes


def _ended(run: Timeline) -> tuple[dict[str, Any], dict[str, Any]]:
    """The diagnosis and the snapshot of a world that is gone, of which the run is known."""
    world, now = run.data["world"], time.time()
    seen = {"world": world, "time": now, "processes": [], "sites": [], "links": []}
    diagnosis = {**diagnose(Graph(seen, {}), world), "title": "All processes have ended"}
    return diagnosis, seen


def _places(
    run: Mapping[str, Any], diagnosis: Mapping[str, Any], seen: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """All of this run that are named, the most telling ones first."""
    # The place of a process that is in no call is that of its last call, perhaps of an earlier run.
    calls = [*seen["processes"], *run["spans"]]
    found = [one["where"] for one in calls if one["state"].startswith("blocked")]
    found += [one["where"] for one in diagnosis["processes"] if one["verdict"] != "idle"]
    found += [one[end] for one in run["flights"] for end in ("sent_at", "received_at")]
    return [one for one in found if one is not None]


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
