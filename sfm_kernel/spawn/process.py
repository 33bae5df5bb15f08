"""Operations of an owner on its processes: start, wait, ask to end, kill."""

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
    """A child process, as ``subprocess.Popen`` or ``forked.Child``."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None: ...

    def poll(self) -> int | None: ...

    def send_signal(self, sig: int, /) -> None: ...


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs one of this package's modules in a fresh Python.

    -P keeps the current folder out of ``sys.path``: a file in it could hide a module of Python.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def start(words: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a process in a new session: Ctrl-C reaches only its owner, which ends it.

    Args:
        words: the command.
        options: options of ``subprocess.Popen``.
    """
    return subprocess.Popen(words, **{"start_new_session": True, **options})


def wait(processes: Sequence[Process], seconds: float | None = None) -> bool:
    """Wait until all have ended, at most for ``seconds``; returns whether all have ended."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while any(process.poll() is None for process in processes):
        if deadline is not None and time.monotonic() >= deadline:
            return False
        time.sleep(0.002)
    return True


def end(processes: Sequence[Process], grace: float) -> None:
    """End processes and the children in their groups: ask first, then kill.

    Returns when all have ended and their pipes are closed. Harmless when repeated.

    Args:
        grace: seconds between SIGTERM and SIGKILL; 0: SIGKILL at once.
    """
    if grace:
        send(processes, signal.SIGTERM)
    if not grace or not wait(processes, grace):
        send(processes, signal.SIGKILL)
        wait(processes)
    for process in processes:
        for pipe in (getattr(process, name, None) for name in ("stdin", "stdout", "stderr")):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()


def send(processes: Sequence[Process], number: int) -> None:
    """Send a signal to processes that have not been reaped, and to the groups that they lead."""
    for process in processes:
        if process.returncode is None:  # a reaped process's id may belong to another process
            try:
                os.killpg(process.pid, number)
            except (ProcessLookupError, PermissionError):  # the process leads no group
                process.send_signal(number)
