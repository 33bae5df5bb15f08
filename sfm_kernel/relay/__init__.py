"""The relay: shows one machine's processes to observers on other machines.

A relay is a separate process, one for each world on a machine. It reads the segments in the world's
folder as every observer does, so its snapshots stay true while a process holds its GIL, is stopped,
or has died. It is no member of the world. It reports dead processes to the directory server, since
the server may have no route to them. While an observer watches the world, the relay sends snapshots
and carries out the observer's orders: it ends a blocked call that is part of a deadlock, or
interrupts a process. An observer has a ``view.RemoteView``. The directory server carries the
messages between the two, and does not read them.

    python -m sfm_kernel.relay      by hand: the world from SFM_WORLD, SFM_DIRECTORY and SFM_KEY

Engines that join through a directory server, and their notebook, call ``start``: if the relay of
their machine is killed, one of them starts another one. A relay ends when no process of the world
lives on its machine any longer, or the server has ended; it leaves no file.

    lock      lets one relay of a world run on a machine
    process   the relay's loop
    wire      the messages between relays and observers
    view      an observer's knowledge of other machines
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time

from sfm_kernel.relay.lock import Lock, is_held, is_orphaned
from sfm_kernel.spawn import process

DETACHED = "--detached"
"""The option that makes a relay read its world from stdin, and detach from its parent."""

CHECK_SECONDS = 0.5
"""Seconds between two looks whether the relay was killed."""

PROMPT = 20
"""So many relays are replaced at once; later ones, which perhaps cannot live, after a minute."""


def start(world: str, url: str, key: bytes, folder: str) -> None:
    """Make sure that a relay runs on this machine until it ends by itself; returns at once.

    Call it after this process has joined: a relay that is about to end checks once more whether a
    process lives on the machine. A thread looks after the relay, so that it is not replaced while
    all processes that have called this hold their GIL, or are stopped.

    Args:
        url, key: the address and key of the world's directory server.
        folder: the world's folder on this machine.
    """
    about = {"world": world, "url": url, "key": key.hex(), "folder": folder}
    threading.Thread(target=_look_after, args=(about,), name="sfm-relay", daemon=True).start()


def _look_after(about: dict[str, str]) -> None:
    folder = about["folder"]
    if not is_held(folder):
        _start(folder, about)
    for nth in itertools.count():
        while is_held(folder):
            time.sleep(CHECK_SECONDS)
        if not is_orphaned(folder):  # it has ended by itself
            return
        _start(folder, about)
        time.sleep(CHECK_SECONDS if nth < PROMPT else 60.0)


def _start(folder: str, about: dict[str, str]) -> None:
    """Start the relay through a short-lived child, so that it is no child of this process."""
    try:
        lock = Lock.acquire(folder)
    except OSError:  # the user has removed the world, or this process has no descriptor left
        return
    if lock is None:
        return  # another process starts it
    try:
        child = subprocess.Popen(
            process.python("sfm_kernel.relay", DETACHED),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a signal to the engine's group does not reach the relay
            pass_fds=[lock.fd],
        )
    except OSError:
        return
    finally:
        lock.hand_on()
    # Through stdin: other users can read a command line.
    child.communicate(json.dumps({**about, "lock": lock.fd}).encode())
