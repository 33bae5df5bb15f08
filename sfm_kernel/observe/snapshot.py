"""A picture of a world: who is there, what each process does, what waits in each inbox.

Read from the segments in shared memory. The processes need not take part: the picture is true
while a cell runs, while a call is blocked, while a C function holds the GIL, while a process is
stopped (its inbox is then as it last was), and after it died.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any

from sfm_kernel import _native


def snapshot(folder: str) -> dict[str, Any]:
    """What the processes of the world in ``folder`` are doing now.

    Args:
        folder: the world's folder on this machine, ``Endpoint.folder``.
    Returns:
        ``{"world": name, "processes": [...]}``, ordered by rank, guests last. Each process has
        ``name``, ``rank`` (None for a guest), ``pid``, ``host``, ``uid``, ``alive``, ``state``
        ("idle", "running", "blocked in recv", "blocked in send", "left"), ``since`` (s since
        1970), ``waits`` (what a blocked call waits for), ``depth`` (messages in the inbox),
        ``bytes``, ``sent``, ``received`` (messages so far), ``messages`` (a list of the first
        ones, each a list of "name=value" texts).
    Raises:
        FileNotFoundError: there is no such folder.
    Cost: some 50 us for each process; 50 ms for one that is stopped.
    """
    processes = []
    for entry in sorted(os.listdir(folder)):
        if entry.endswith(".seg"):
            # A process may leave while we look: then it is not in the picture.
            with contextlib.suppress(OSError, ValueError):
                processes.append(_process(os.path.join(folder, entry)))
    processes.sort(key=lambda one: (one["rank"] is None, one["rank"] or 0, str(one["name"])))
    return {"world": os.path.basename(folder.rstrip("/")), "processes": processes}


def events(folder: str, since: Mapping[str, int] | None = None) -> list[dict[str, Any]]:
    """The latest events of the world's processes, by time.

    Args:
        folder: as for ``snapshot``.
        since: how far each process was read before, by uid: the ``place`` of its last event.
            Events up to there are left out.
    Returns:
        For each event ``uid`` (the process), ``place`` (in its history, from 0 on), ``time`` (s
        since 1970), ``what`` ("sent", "received", or the state that began then), ``peer`` (uid),
        ``number`` (which message of this pair: the same at both ends) and ``nbytes``. A process
        keeps its last 4096 events.
    """
    files = [entry for entry in os.listdir(folder) if entry.endswith(".seg")]
    uids = {file[16:32]: file[:32] for file in files}
    found = []
    for file in files:
        uid = file[:32]
        start = since[uid] + 1 if since and uid in since else 0
        with contextlib.suppress(OSError, ValueError):  # it may leave while we look
            for place, time, what, peer, number, nbytes in _native.read_trace(
                os.path.join(folder, file), start
            )[0]:
                event = {"uid": uid, "place": place, "time": time, "what": what}
                event |= {"peer": uids.get(peer, peer), "number": number, "nbytes": nbytes}
                found.append(event)
    return sorted(found, key=lambda one: (one["time"], one["place"]))


def _process(path: str) -> dict[str, Any]:
    state = _native.read_segment(path)
    about = json.loads(state.pop("info") or "{}")
    summary = state.pop("summary") or ""
    messages = [line.split("\t") for line in summary.split("\n") if line]
    return {
        "name": about.get("name", state["uid"][:8]),
        "rank": about.get("rank"),
        "pid": about.get("pid"),
        "host": about.get("host"),
        **state,
        "messages": messages,
    }
