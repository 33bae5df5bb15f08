"""Processes as if what nobody can judge did not happen: for deadlocks that only that could resolve.

Threads and callbacks do nothing, a process that polls only polls, nobody releases a lock, and no
newcomer joins a world that has all its ranks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel.observe.explain.polls import as_other, as_receive

Process = Mapping[str, Any]


def alone(process: Process, is_closed: bool) -> Process:
    """The process without these; ``is_closed``: only newcomers could still join its world."""
    process = as_receive(process)
    if waits_for_lock(process):
        process = _blocked(process, _LOCK)
    elif is_closed and waits_for_newcomer(process):
        process = _blocked(process, {**process["wait"], "kind": "other", "all": False})
    if not process["others"]:
        return process
    state = "idle" if process["state"] == "running" else process["state"]  # it has come to its end
    # What has not been examined is in the hands of the thread that runs the callbacks.
    settled = process["settled"] or runs_callback(process)
    return {**process, "state": state, "others": [], "settled": settled}


def others(process: Process, is_closed: bool) -> list[Mapping[str, Any]]:
    """All that could make the process go on, as "others" of ``schema.json``."""
    found = [*([as_other(process)] if process["polls"] else []), *process["others"]]
    if waits_for_lock(process):
        found.append({"kind": "lock", "name": "", "where": process["now"]["where"], "cell": None})
    elif is_closed and waits_for_newcomer(process):
        found.append(newcomer(process, process["wait"]["peers"]))
    return found


def newcomer(process: Process, names: Iterable[object]) -> dict[str, Any]:
    """One who could still join, and make the process go on; with any of these names, if given."""
    text = ", ".join(map(repr, names))
    return {"kind": "newcomer", "name": text, "where": process["where"], "cell": None}


def runs_callback(process: Process) -> bool:
    """Whether messages have arrived that are not examined before a callback has returned."""
    is_there = any(other["kind"] == "callback" for other in process["others"])
    stopped = process["now"] is not None and process["now"]["does"] == "stopped"
    return bool(is_there and process["wait"] and not process["settled"] and not stopped)


def waits_for_lock(process: Process) -> bool:
    """Whether its main thread waits, in no call of this package, for a lock that only a message
    could release: its callback does so, or it is the result of a future."""
    now = process["now"]
    is_in_one = process["state"] == "running" and not (process["others"] or process["polls"])
    return bool(is_in_one and now and now["does"] == "lock" and now.get("alone"))


def waits_for_newcomer(process: Process) -> bool:
    """Whether it waits until others have joined the world."""
    wait = process["wait"]
    return bool(wait and wait["kind"] == "join" and not wait["until"])


def computes(process: Process) -> bool:
    """Whether a thread of the process computes. If nobody can tell: only if it waits for a lock.

    A thread that computes always runs, or waits for a processor. Others do that for a moment, such
    as the one that answers observers, so a single look proves nothing.
    """
    if not process["here"] or process["host"] != os.uname().nodename:  # containers have other pids
        return waits_for_lock(process)
    for _ in range(_LOOKS):
        if not _runs(process["pid"]):
            return False
        time.sleep(_PAUSE)
    return True


_LOOKS, _PAUSE = 10, 0.002
"""Looks at the threads of a process, and seconds between them."""


def _runs(pid: int) -> bool:
    """Whether a thread runs, or waits for a disk; False if that is unknown."""
    folder, own = f"/proc/{pid}/task", str(threading.get_native_id())
    try:
        threads = [thread for thread in os.listdir(folder) if thread != own]  # a notebook's watcher
        return any(_state(f"{folder}/{thread}/stat") in "RD" for thread in threads)
    except (OSError, IndexError):
        return False


def _state(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


def _blocked(process: Process, wait: Mapping[str, Any]) -> Process:
    about = {"state": "blocked in recv", "wait": wait, "settled": True}
    return {**process, **about}


_LOCK: Process = {
    "kind": "other",
    "template": [],
    "text": "a lock",
    "peers": None,
    "all": False,
    "until": None,
    "context_id": "",
    "purpose": "",
    "group": None,
}
"""The "wait" of ``schema.json`` for a lock that only a message could release."""
