"""Facts about the machine: a measured time means nothing without them."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from sfm_kernel.lessons.measure.rows import Row

VARYING = ("load_1_min", "time")
"""The facts that may differ between results that are compared."""


def machine() -> Row:
    """The facts on which times depend: processor, cores, versions and the load at this moment."""
    return {
        "host": platform.node(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sfm_kernel": _version("sfm-kernel"),
        "numpy": _version("numpy"),
        "pyzmq": _version("pyzmq"),
        "mpi4py": _version("mpi4py"),
        "transport": os.environ.get("SFM_TRANSPORT", "automatic"),
        "load_1_min": round(os.getloadavg()[0], 2),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }


def usable_cores() -> float:
    """The cores that this process may use: in a container or job fewer than the machine has."""
    allowed = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return allowed if quota == "max" else min(allowed, round(int(quota) / int(period), 2))
    except (OSError, ValueError):  # no such limit here
        return allowed


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(distribution: str) -> str:
    from importlib import metadata  # takes 0.1 s, and most programs do not need it

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"


class Others:
    """The share of the processors' time that programs take which are no descendants of this one.

    What a virtual machine's host has taken from it ("steal") is among it; interrupts are not.
    """

    SHORTEST = 0.5
    """Seconds: a shorter time has too few of the kernel's ticks to tell."""

    def __init__(self) -> None:
        self._read_at, self._times = time.monotonic(), _times()
        self._share = 0.0

    def share(self) -> float:
        """From 0 to 1, since the last time; the same as then if that is less than ``SHORTEST``."""
        now = time.monotonic()
        if now - self._read_at >= self.SHORTEST:
            before, self._read_at, self._times = self._times, now, _times()
            passed, others = (new - old for new, old in zip(self._times, before, strict=True))
            self._share = min(max(others / passed, 0.0), 1.0) if passed > 0 else 0.0
        return self._share


def _times() -> tuple[int, int]:
    """The ticks of all processors, and those that other programs have taken; (0, 0) if unknown."""
    try:
        ticks = [int(word) for word in Path("/proc/stat").read_text().split(maxsplit=9)[1:9]]
        user, nice, system, *_, steal = ticks
        return sum(ticks), user + nice + system + steal - _ticks_of_descendants()
    except (OSError, ValueError):
        return 0, 0


def _ticks_of_descendants() -> int:
    """The ticks of this process and its descendants, also of those that have ended."""
    parents, ticks, me = dict[int, int](), dict[int, int](), os.getpid()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            parents[int(entry)], ticks[int(entry)] = int(fields[1]), sum(map(int, fields[11:15]))

    def ours(pid: int) -> bool:
        while pid in parents and pid != me:
            pid = parents[pid]
        return pid == me

    return sum(ticks[pid] for pid in parents if ours(pid))
