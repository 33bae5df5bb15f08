"""The relay: shows one machine's processes to observers on other machines.

A relay is a separate process, one for each world on a machine. It reads the segments in the world's
folder as every observer does, so its snapshots stay true while a process holds its GIL, is stopped,
or has died. It is no member of the world. It reports dead processes to the directory server, since
the server may have no route to them. While an observer watches the world, the relay sends snapshots
and carries out the observer's orders: it ends a blocked call that is part of a deadlock, or
interrupts a process. An observer has a ``view.RemoteView``. The directory server carries the
messages between the two, and does not read them.

    python -m sfm_kernel.relay      by hand: the world from SFM_WORLD, SFM_DIRECTORY and SFM_KEY

Engines that join through a directory server call ``start``. A relay ends when no process of the
world lives on its machine any longer, or the server has ended; it leaves no file.

    lock      lets one relay of a world run on a machine
    process   the relay's loop
    wire      the messages between relays and observers
    view      an observer's knowledge of other machines
"""

from __future__ import annotations

import json
import subprocess
import threading

from sfm_kernel.relay.lock import is_held
from sfm_kernel.spawn import process

DETACHED = "--detached"
"""The option that makes a relay read its world from stdin, and detach from its parent."""


def start(world: str, url: str, key: bytes, folder: str) -> None:
    """Make sure that a relay runs on this machine; returns at once.

    Call it after this process has joined: a relay that is about to end checks once more whether a
    process lives on the machine.

    Args:
        url, key: the address and key of the world's directory server.
        folder: the world's folder on this machine.
    """
    if is_held(folder):
        return
    # Through stdin: other users can read a command line.
    about = json.dumps({"world": world, "url": url, "key": key.hex(), "folder": folder})
    threading.Thread(target=_start, args=(about,), name="sfm-relay-start", daemon=True).start()


def _start(about: str) -> None:
    """Start the relay through a short-lived child, so that it is no child of this process."""
    subprocess.run(
        process.python("sfm_kernel.relay", DETACHED),
        input=about.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # a signal to the engine's group does not reach the relay
        check=False,
    )
