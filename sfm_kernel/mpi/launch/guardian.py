"""Ends the ranks, and what they started, if the launcher was killed; removes their world.

    python -P -S guardian.py WORLD

The launcher starts it first, and writes on its stdin who lives: a line "+PID" for each rank that
was started, "-PID" for one that has ended with all that it had started, the path of a folder that
is there for this run only, and "done". The end of
stdin before that means that the launcher is dead. It imports nothing that it may never need: it is
there in a moment, and small.
"""

from __future__ import annotations

import os
import signal
import sys

_REMOVE = """\
import shutil, sys, time
from sfm_kernel.directory import remove_world
deadline = time.monotonic() + 10
while not remove_world(sys.argv[1]) and time.monotonic() < deadline:
    time.sleep(0.01)  # the killed are not dead yet
for folder in sys.argv[2:]:
    shutil.rmtree(folder, ignore_errors=True)
"""


def main(world: str) -> None:
    """Return when the launcher has ended well, or clean up after it."""
    living: set[int] = set()
    folders = []
    for line in sys.stdin:
        if line == "done\n":
            return
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


if __name__ == "__main__":
    main(sys.argv[1])
