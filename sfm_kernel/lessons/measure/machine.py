"""Facts about the machine: a measured time means nothing without them."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from sfm_kernel.lessons.measure.rows import Row


def machine() -> Row:
    """The facts on which times depend: processor, cores, versions and the load at this moment."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": platform.platform(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sfm_kernel": _version("sfm-kernel"),
        "numpy": _version("numpy"),
        "pyzmq": _version("pyzmq"),
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
