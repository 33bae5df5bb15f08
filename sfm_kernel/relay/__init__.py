"""The processes of one machine as observers on other machines see them.

A relay is a process of its own, one for each world on a machine: it reads the segments in the
world's folder as every observer does, so that its snapshots stay true while a process holds its
GIL, is stopped, or has died. It is no member of the world. It tells the directory server who has
died, since the server may have no route to that process. While somebody observes the world it sends
snapshots, and does what an observer wants: it ends a blocked call that is part of a deadlock, or
interrupts a process. An observer has a ``view.RemoteView``. The directory server carries what the
two say to each other, and does not read it.

    python -m sfm_kernel.relay      by hand: the world from SFM_WORLD, SFM_DIRECTORY and SFM_KEY

Engines that join through a directory server call ``start``. A relay ends when no process of the
world lives on its machine any more, or the server is gone; it leaves no file.

    lock      no second relay of a world runs on a machine
    process   what a relay does
    wire      what relays and observers send each other
    view      what an observer knows of other machines
"""

from __future__ import annotations

import json
import subprocess
import threading

from sfm_kernel.relay.lock import is_held
from sfm_kernel.spawn import process

DETACHED = "--detached"
"""The argument with which the world comes through stdin, and the process leaves its parent."""


def start(world: str, url: str, key: bytes, folder: str) -> None:
    """See to it that a relay runs on this machine; returns at once.

    To be called after this process has joined: a relay that is about to end checks once more
    whether a process lives here.

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
    subprocess.run(
        process.python("sfm_kernel.relay", DETACHED),
        input=about.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # what ends the engine, or interrupts it, means that alone
        check=False,
    )
