"""Shows the processes of one machine to observers on others.

A process of its own, one for each world on a machine: it reads the segments in the world's folder
as every observer does, so that the picture stays true while a process holds its GIL, is stopped, or
has died. It is no member of the world. It tells the directory server who has died, since the server
may have no way to that process. As long as somebody looks it shows what it sees, and carries out
what an observer there wants: to end a blocked call that is part of a deadlock, to interrupt a
process.

    python -m sfm_kernel.relay      by hand: the world from SFM_WORLD, SFM_DIRECTORY and SFM_KEY

Engines that join through a directory server call ``start``. A relay ends when no process of the
world lives on its machine any more, or the server is gone; it leaves no file.

    lock      that there is one
    watching  what it does
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading

from sfm_kernel.relay.lock import is_held

DETACHED = "--detached"
"""The argument with which the world comes through stdin, and the process leaves its parent."""


def start(world: str, url: str, key: bytes, folder: str) -> None:
    """See to it that a relay runs on this machine; returns at once.

    To be called after this process has joined: a relay that is about to end looks again.

    Args:
        url, key: of the world's directory server.
        folder: the world's folder on this machine.
    """
    if is_held(folder):
        return
    # No secret on a command line, which others can read.
    about = json.dumps({"world": world, "url": url, "key": key.hex(), "folder": folder})
    threading.Thread(target=_start, args=(about,), name="sfm-relay-start", daemon=True).start()


def _start(about: str) -> None:
    """Run what starts the relay, which is then no child of this process."""
    # -P: or a file in the current folder could take the place of one of Python's own modules.
    subprocess.run(
        [sys.executable, "-P", "-m", "sfm_kernel.relay", DETACHED],
        input=about.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what ends the engine, or interrupts it, means that alone
        check=False,
    )
