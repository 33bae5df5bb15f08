"""Signals to processes of this machine, and never to a stranger's; signals that end this process.

A process is held by a descriptor (pidfd) before it is checked, and signalled through that: its pid
cannot be reused in between, however long the check takes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sfm_kernel._native import is_alive

MOST_PID = 1 << 22
"""The largest pid on Linux (PID_MAX_LIMIT)."""


class Ending:
    """An event that a signal handler may set, whatever its thread does.

    (That of ``threading`` has a lock: a handler that interrupts ``wait`` while that holds it would
    wait for its own thread. Putting into a SimpleQueue is allowed there.)
    """

    def __init__(self) -> None:
        self._set: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        self._set.put(None)

    def is_set(self) -> bool:
        return not self._set.empty()

    def wait(self, timeout: float | None = None) -> bool:
        """Returns whether it is set, after so many seconds at most."""
        with contextlib.suppress(queue.Empty):
            self._set.get(timeout=None if timeout is None else max(0.0, timeout))
            self._set.put(None)  # it stays set
        return self.is_set()


def ending() -> Ending:
    """An event that SIGINT and SIGTERM set from now on. For the main thread."""
    event = Ending()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: event.set())
    return event


class NotReached(Exception):
    """The process has ended, or may not be signalled; the message says which."""


@contextmanager
def held(processes: Iterable[tuple[str, Any]]) -> Iterator[list[int]]:
    """Descriptors of the living processes, for ``send``, as long as the block runs.

    Args:
        processes: the segment of each, and the pid that it has published.
    """
    with contextlib.ExitStack() as stack:
        descriptors = []
        for segment, pid in processes:
            with contextlib.suppress(NotReached):
                descriptors.append(_hold(segment, pid))
                stack.callback(os.close, descriptors[-1])
        yield descriptors


def send(descriptors: Iterable[int], number: int) -> None:
    """Send a signal to the held processes that have not ended."""
    for descriptor in descriptors:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)


def interrupt(segment: str, pid: Any, name: str = "it") -> str:
    """Send SIGINT to the living process with this segment; return "", or why it failed.

    Args:
        pid: the pid that the process has published. It must be a process of this user, and have
            the segment mapped.
        name: the name of the process in the reason.
    """
    try:
        descriptor = _hold(segment, pid, name)
    except NotReached as problem:
        return str(problem)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGINT)
    except OSError as error:
        return f"{name} (pid {pid}) cannot be reached: {error.strerror}"
    finally:
        os.close(descriptor)
    return ""


def _hold(segment: str, pid: Any, name: str = "it") -> int:
    """A descriptor of the living process with this segment; raises NotReached."""
    if not os.path.exists(segment) or not is_alive(segment):
        raise NotReached(f"{name} has ended")
    if type(pid) is not int or not 0 < pid <= MOST_PID:
        raise NotReached(f"{name} cannot be reached: its segment does not say which process it is")
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        raise NotReached(f"{name} (pid {pid}) cannot be reached: {error.strerror}") from None
    try:
        if os.stat(f"/proc/{pid}").st_uid == os.geteuid() and _has_mapped(pid, segment):
            return descriptor
        why = f"{name} is not process {pid} of this machine: it runs in another container"
    except OSError as error:
        why = f"{name} (pid {pid}) cannot be reached: {error.strerror}"
    os.close(descriptor)
    raise NotReached(why)


def _has_mapped(pid: int, path: str) -> bool:
    """Whether the process has mapped this file."""
    # By its name, which is unique: inodes are not the same everywhere (overlay, btrfs).
    with open(f"/proc/{pid}/maps", errors="surrogateescape") as maps:
        return any(line.rstrip("\n").endswith(f" {os.path.realpath(path)}") for line in maps)
