"""What a world's processes on this machine use of its memory and processors, from /proc."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel.watching import processor_time

PAUSE = 1.0
"""Seconds between two readings."""

_KILOBYTES = re.compile(r"^(RssAnon|VmData):\s+(\d+) kB$", re.MULTILINE)

Processes = Iterable[Mapping[str, Any]]
"""The processes of a snapshot."""


class Usage:
    """Reads again and again what processes use; processor time is that since the last reading."""

    def __init__(self) -> None:
        self._before: dict[str, tuple[float, float]] = {}

    def read(self, world: str, processes: Processes) -> dict[str, Any]:
        """The schema's ``usage``. A process that lives elsewhere, or has just ended, has nulls."""
        before, self._before = self._before, {}
        found = []
        for process in processes:
            uid, pid = process["uid"], process["pid"]
            memory = limit = seconds = None
            if process["alive"] and process["here"] and pid is not None:
                memory, limit = _memory(pid)
                seconds = processor_time(pid)
            now, percent = time.monotonic(), None
            if seconds is not None:
                self._before[uid] = now, seconds
                if uid in before and now > before[uid][0]:
                    percent = 100 * (seconds - before[uid][1]) / (now - before[uid][0])
            found.append({"uid": uid, "memory": memory, "limit": limit, "processor": percent})
        return {"world": world, "time": time.time(), "processes": found}


def _memory(pid: int) -> tuple[int | None, int | None]:
    """The bytes of private memory of a process, and its limit for them.

    Under a limit, these are the bytes that count towards it: also what the process has reserved
    and never written to.
    """
    try:
        limit, _ = resource.prlimit(pid, resource.RLIMIT_DATA)
        with open(f"/proc/{pid}/status") as file:
            sizes = dict(_KILOBYTES.findall(file.read()))
        if limit == resource.RLIM_INFINITY:
            return int(sizes["RssAnon"]) << 10, None
        return int(sizes["VmData"]) << 10, limit
    except (OSError, KeyError):
        return None, None
