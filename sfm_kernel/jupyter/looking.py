"""The commands of ``%sfm`` that show a world and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.tables import Diagnosis, SitesView, queue_table, status_table
from sfm_kernel.jupyter.watch import watch
from sfm_kernel.observe import explain, snapshot, timeline
from sfm_kernel.observe.code_locations import words as code_location

Look = Callable[[Home, Sequence[str]], None]
"""Shows something of the notebook's world; gets the words after the command."""

JUDGE = 1.0
"""Seconds that `%sfm why` and `%sfm record` wait for cells and calls that have begun just now."""


def blocked_calls(home: Home) -> dict[str, str]:
    """In which call each process is blocked, by name; empty if the world is gone."""
    try:
        ones = [one for one in _processes(home) if one["waits"] and one["state"] != "idle"]
    except OSError:  # an interrupt must work nevertheless
        return {}
    return {str(one["name"]): _call(one) for one in ones}


def _status(home: Home, words: Sequence[str]) -> None:
    display(status_table(_processes(home)))


def _queues(home: Home, words: Sequence[str]) -> None:
    display(queue_table(_processes(home)))


def _sites(home: Home, words: Sequence[str]) -> None:
    display(SitesView(snapshot(home.sfm, home.view.states())))


def _why(home: Home, words: Sequence[str]) -> None:
    display(Diagnosis(explain(home.sfm, JUDGE, home.view.states, at_work=home.at_work)))


def _timeline(home: Home, words: Sequence[str]) -> None:
    if len(words) > 1:
        raise UsageError("%sfm timeline takes at most one file: `%sfm timeline run.json`")
    found = timeline(home.sfm)
    if words:
        try:
            found.to_chrome(words[0])
        except OSError as problem:
            told = f"{words[0]} cannot be written ({problem.strerror}): name another file"
            raise UsageError(f"%sfm timeline: {told}") from None
        print(f"{words[0]}: open it in https://ui.perfetto.dev, or chrome://tracing")
    else:
        display(found)


LOOKS: dict[str, Look] = {
    "status": _status,
    "queues": _queues,
    "sites": _sites,
    "why": _why,
    "timeline": _timeline,
    "watch": watch,
}


def _processes(home: Home) -> list[dict[str, Any]]:
    processes: list[dict[str, Any]] = snapshot(home.sfm, home.view.states())["processes"]
    return processes


def _call(process: Mapping[str, Any]) -> str:
    """In which call it is blocked, and where."""
    where = code_location(process["where"])
    return f"{process['waits']} ({where})" if where else str(process["waits"])
