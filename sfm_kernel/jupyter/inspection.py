"""The commands of ``%sfm`` that show a world and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from sfm_kernel.directory import Name
from sfm_kernel.jupyter.home import Home
from sfm_kernel.jupyter.tables import Diagnosis, Queues, SitesView, status_table
from sfm_kernel.jupyter.watch import watch
from sfm_kernel.observe import explain, snapshot, timeline
from sfm_kernel.observe.code_locations import words as code_location
from sfm_kernel.observe.drawings.matrix import Matrix

Command = Callable[[Home, Sequence[str]], None]
"""Shows something of the notebook's world; its second argument is the words after the command."""

JUDGE = 1.0
"""Seconds that `%sfm why` and `%sfm record` wait for cells and calls that have just begun."""


def blocked_calls(home: Home) -> dict[Name, str]:
    """The call in which each process is blocked, by name; empty if the world has ended."""
    seen = [process for process in _processes_if_any(home) if process["unseen"] is None]
    blocked = [process for process in seen if process["waits"] and process["state"] != "idle"]
    return {process["name"]: _blocked_call(process) for process in blocked}


def idle(home: Home) -> set[Name]:
    """The names of the processes that run no cell; empty if the world has ended."""
    return {one["name"] for one in _processes_if_any(home) if one["state"] == "idle"}


def here(home: Home) -> set[Name]:
    """The names of the processes on this machine; empty if the world has ended."""
    return {one["name"] for one in _processes_if_any(home) if one["here"]}


def end_of(home: Home, name: str) -> str | None:
    """How a process has ended, in words that follow its name; None if that is not known."""
    ends = (one["end"] for one in _processes_if_any(home) if str(one["name"]) == name)
    return next(filter(None, ends), None)


def _timeline(home: Home, words: Sequence[str]) -> None:
    if len(words) > 1:
        raise UsageError("%sfm timeline takes at most one file: `%sfm timeline run.json`")
    found = timeline(home.sfm)
    if words:
        try:
            found.to_chrome(words[0])
        except OSError as problem:
            text = f"{words[0]} cannot be written ({problem.strerror}): name another file"
            raise UsageError(f"%sfm timeline: {text}") from None
        print(f"{words[0]}: open it in https://ui.perfetto.dev, or chrome://tracing")
    else:
        display(found)


COMMANDS: dict[str, Command] = {
    "status": lambda home, words: display(status_table(_processes(home))),
    "queues": lambda home, words: display(Queues(_processes(home))),
    "matrix": lambda home, words: display(Matrix.of(timeline(home.sfm).data)),
    "sites": lambda home, words: display(SitesView(snapshot(home.sfm, home.view.states()))),
    "why": lambda home, words: display(
        Diagnosis(explain(home.sfm, JUDGE, home.view.states, at_work=home.at_work))
    ),
    "timeline": _timeline,
    "watch": watch,
}


def _processes(home: Home) -> list[dict[str, Any]]:
    processes: list[dict[str, Any]] = snapshot(home.sfm, home.view.states())["processes"]
    return processes


def _processes_if_any(home: Home) -> list[dict[str, Any]]:
    """The processes; none if the world has ended: an interrupt must work nevertheless."""
    try:
        return _processes(home)
    except OSError:
        return []


def _blocked_call(process: Mapping[str, Any]) -> str:
    """The call in which the process is blocked, and its line."""
    location = code_location(process["where"])
    return f"{process['waits']} in {location}" if location else str(process["waits"])
