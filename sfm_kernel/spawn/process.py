"""Processes as their owner sees them: started, waited for, asked to end, killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol


class Process(Protocol):
    """A child: ``subprocess.Popen`` is one, ``forked.Fork`` another."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def send_signal(self, sig: int, /) -> None: ...


def python(module: str, *arguments: str) -> list[str]:
    """The words that run one of our modules in a fresh Python.

    -P keeps the current folder out of ``sys.path``: a file there could take the place of one of
    Python's own modules.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in a session of its own: Ctrl-C is for its owner, which ends it.

    Args:
        options: of ``subprocess.Popen``.
    """
    return subprocess.Popen(words, **{"start_new_session": True, **options})


def wait(processes: Sequence[Process], seconds: float | None = None) -> bool:
    """Whether all have ended within so many seconds; None: wait until they have."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while any(one.poll() is None for one in processes):
        if deadline is not None and time.monotonic() >= deadline:
            return False
        time.sleep(0.002)
    return True


def end(processes: Sequence[Process], grace: float) -> None:
    """End processes, and what they have started in their groups: ask, then kill.

    Returns when all have ended and their pipes are closed. Harmless when repeated.

    Args:
        grace: seconds between SIGTERM and SIGKILL; 0: they are killed at once.
    """
    if grace:
        send(processes, signal.SIGTERM)
    if not grace or not wait(processes, grace):
        send(processes, signal.SIGKILL)
        wait(processes)
    for one in processes:
        for pipe in (getattr(one, name, None) for name in ("stdin", "stdout", "stderr")):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()


def send(processes: Sequence[Process], number: int) -> None:
    """Send a signal to processes that have not been reaped, and to the groups that they lead."""
    for one in processes:
        if one.returncode is None:  # else its number may be somebody else's by now
            try:
                os.killpg(one.pid, number)
            except (ProcessLookupError, PermissionError):  # it leads no group
                one.send_signal(number)
