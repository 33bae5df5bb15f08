"""A process as a directory sees it, and processes that can be killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfm_kernel.directory import LocalDirectory, Member
from sfm_kernel.transport.base import Directory


class Process:
    """A segment that is locked, and an address that listens. ``die`` is what SIGKILL leaves."""

    def __init__(self, folder: str) -> None:
        self.uid = secrets.token_hex(16)
        self.segment = os.path.join(folder, f"{self.uid}.seg")
        unfinished = os.path.join(folder, f"{self.uid}.new")
        self._file = open(unfinished, "wb")  # noqa: SIM115 - as long as the process lives
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.rename(unfinished, self.segment)  # an unlocked one would be taken for a dead one's
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"

    def join(self, directory: Directory, **request: Any) -> Member:
        return directory.join(
            uid=self.uid,
            pid=os.getpid(),
            host="here",
            segment=self.segment,
            address=self.address,
            **request,
        )

    @contextlib.contextmanager
    def moved(self) -> Iterator[int]:
        """Give all that is open to a process of its own; yields that one's pid."""
        with child(lambda: None) as pid:
            self.die()
            yield pid

    def die(self) -> None:
        self._file.close()
        self._listener.close()

    def leave(self) -> None:
        self.die()
        Path(self.segment).unlink(missing_ok=True)


def killed(world: str) -> Path:
    """The folder of a world whose only process was killed."""
    with LocalDirectory(world) as opened:
        process = Process(opened.folder)
        process.join(opened)
        process.die()
    return Path(opened.folder)


@contextlib.contextmanager
def child(function: Callable[[], object]) -> Iterator[int]:
    """A forked process that runs ``function`` and then waits to be killed; yields its pid.

    The block begins when the function has returned, or the process has died.
    """
    ready, tell = os.pipe()
    parent_died, hold = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(hold)
            function()
            os.write(tell, b"!")
            os.read(parent_died, 1)
        finally:
            os._exit(1)
    os.close(tell)
    try:
        os.read(ready, 1)
        yield pid
    finally:
        kill(pid)
        for fd in (ready, parent_died, hold):
            os.close(fd)


def kill(pid: int) -> None:
    """SIGKILL, and wait until it took effect. Harmless when repeated."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
