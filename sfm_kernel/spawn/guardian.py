"""If the owner of a job was killed, the guardian kills the job's processes and their children, and
removes their world.

The owner forks the guardian first, and then writes lines into a pipe: "+PID" for each process that
it has started, "-PID" for a process that has ended with all its children, the path of each
temporary folder of the job, and "done". If the pipe ends before "done", the owner has died. The
guardian then imports the package in a new Python: the kill may have left the owner's state, which
the fork shares, half changed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

from sfm_kernel.spawn.forked import fork, let_go, take_signals

_REMOVE = """\
import shutil, sys, time
from sfm_kernel.directory import remove_world
deadline = time.monotonic() + 10
while not remove_world(sys.argv[1]) and time.monotonic() < deadline:
    time.sleep(0.01)  # the killed are not dead yet
for folder in sys.argv[2:]:
    shutil.rmtree(folder, ignore_errors=True)
"""


@contextmanager
def guardian(world: str) -> Iterator[Callable[[str], None]]:
    """Start a guardian for the processes of a world; yields the function that writes it a line.

    The guardian is a fork: a fresh Python would take as long to start as all ranks together.
    """
    noted, notes = os.pipe()
    try:
        pid = fork()
        if not pid:
            _main(world, noted)
    except OSError:
        os.close(notes)
        raise
    finally:
        os.close(noted)
    owner = os.getpid()

    def note(line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(notes, f"{line}\n".encode())

    try:
        yield note
    finally:
        os.close(notes)
        if os.getpid() == owner:  # otherwise this is a fork of the owner
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _main(world: str, noted: int) -> NoReturn:
    """Run the guardian. It closes all of the owner's descriptors except the pipe."""
    try:
        let_go(keep=noted)
        take_signals()
        _guard(world, noted)
    finally:
        os._exit(1)


def _guard(world: str, noted: int) -> None:
    """Wait for the owner's end, and clean up if it was killed."""
    living: set[int] = set()
    folders = []
    with open(noted) as lines:
        for line in lines:
            if line == "done\n":
                os._exit(0)
            if line[0] == "/":
                folders.append(line[:-1])
                continue
            pid = int(line[1:])
            living.add(pid) if line[0] == "+" else living.discard(pid)
    for group in living:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    os.execv(sys.executable, [sys.executable, "-P", "-c", _REMOVE, world, *folders])
