"""Interrupting a process of this machine, and never a stranger."""

from __future__ import annotations

import os
import signal

from sfm_kernel.directory.folders import is_alive


def interrupt(segment: str, pid: int | None, who: str = "it") -> str:
    """Send SIGINT to the living process that has this segment; "" if it got it, else why not.

    Args:
        pid: what the process says of itself. It must be this user's, and have the segment mapped.
        who: what the process is called where it did not get it.
    """
    if not pid or not os.path.exists(segment) or not is_alive(segment):
        return f"{who} has ended"
    try:
        # Held from before the check on: the number cannot become a stranger's in between.
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        return f"{who} (pid {pid}) cannot be reached: {error.strerror}"
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid() or not _has_mapped(pid, segment):
            return f"{who} is not process {pid} of this machine: it runs in another container"
        signal.pidfd_send_signal(descriptor, signal.SIGINT)
    except OSError as error:
        return f"{who} (pid {pid}) cannot be reached: {error.strerror}"
    finally:
        os.close(descriptor)
    return ""


def _has_mapped(pid: int, path: str) -> bool:
    """Whether the process has this file in its memory."""
    # By its name, which nobody else's has: inodes are not the same everywhere (overlay, btrfs).
    with open(f"/proc/{pid}/maps", errors="surrogateescape") as maps:
        return any(line.rstrip("\n").endswith(f" {os.path.realpath(path)}") for line in maps)
