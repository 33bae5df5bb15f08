"""Ends the ranks, and what they started, if the launcher was killed; removes their world.

The launcher forks it first, and writes into a pipe who lives: a line "+PID" for each rank that was
started, "-PID" for one that has ended with all that it had started, the path of a folder that is
there for this run only, and "done". The end of the pipe before that means that the launcher is
dead. What it then needs of the package is imported by a new Python: nothing of the launcher's is
used that a kill may have left half done.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

_REMOVE = """\
import shutil, sys, time
from sfm_kernel.directory import remove_world
deadline = time.monotonic() + 10
while not remove_world(sys.argv[1]) and time.monotonic() < deadline:
    time.sleep(0.01)  # the killed are not dead yet
for folder in sys.argv[2:]:
    shutil.rmtree(folder, ignore_errors=True)
"""


def main(world: str, told: int) -> NoReturn:
    """Be the guardian: end when the launcher has ended well, or after cleaning up after it.

    Args:
        world: that of the ranks.
        told: the descriptor of the pipe. All others are closed.
    """
    try:
        _be_nobody(told)
        _guard(world, told)
    finally:
        os._exit(1)


def _be_nobody(told: int) -> None:
    """Hold nothing of the launcher's: neither its streams nor its handlers of signals."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != told:
            try:
                os.close(fd)
            except OSError:  # the one that has read this list
                pass
    signal.set_wakeup_fd(-1)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    for number in blocked:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)


def _guard(world: str, told: int) -> None:
    living: set[int] = set()
    folders = []
    with open(told) as lines:
        for line in lines:
            if line == "done\n":
                os._exit(0)
            if line[0] == "/":
                folders.append(line[:-1])
                continue
            pid = int(line[1:])
            living.add(pid) if line[0] == "+" else living.discard(pid)
    for group in living:
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass
    os.execv(sys.executable, [sys.executable, "-P", "-c", _REMOVE, world, *folders])
