"""Interrupting a process of this machine, and never a stranger."""

from __future__ import annotations

import os
import signal

from sfm_kernel.directory.folders import is_alive


def interrupt(segment: str, pid: int | None) -> str:
    """Send SIGINT to the living process that has this segment; "" if it got it, else why not.

    Args:
        pid: what the process says of itself. It must be this user's, and have the segment mapped.
    """
    if not pid or not os.path.exists(segment) or not is_alive(segment):
        return "it has ended"
    try:
        # Held from before the check on: the number cannot become a stranger's in between.
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        return f"process {pid} cannot be reached: {error.strerror}"
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid() or not _has_mapped(pid, segment):
            return f"it is not process {pid} of this machine: it runs in another container"
        signal.pidfd_send_signal(descriptor, signal.SIGINT)
    except OSError as error:
        return f"process {pid} cannot be reached: {error.strerror}"
    finally:
        os.close(descriptor)
    return ""


def _has_mapped(pid: int, path: str) -> bool:
    """Whether the process has this very file in its memory."""
    status = os.stat(path)
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    with open(f"/proc/{pid}/maps") as maps:
        places = (line.split(maxsplit=5) for line in maps)
        return any(place[3:5] == [device, str(status.st_ino)] for place in places)
