"""A picture of a world: who is there, what each process does, what waits in each inbox.

Read from the segments in shared memory. The processes need not take part: the picture is true
while a cell runs, while a call is blocked, while a C function holds the GIL, while a process is
stopped (its inbox is then as it last was), and after it died.
"""

from __future__ import annotations

import contextlib
import json
import os
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


def _process(path: str) -> dict[str, Any]:
    state = _native.read_segment(path)
    about = json.loads(state.pop("info") or "{}")
    summary = state.pop("summary") or ""
    messages = [line.split("\t") for line in summary.splitlines()]
    return {
        "name": about.get("name", state["uid"][:8]),
        "rank": about.get("rank"),
        "pid": about.get("pid"),
        "host": about.get("host"),
        **state,
        "messages": messages,
    }
