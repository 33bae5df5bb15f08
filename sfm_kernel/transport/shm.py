"""Shared memory: one ring for each pair that talks, made on first use.

The native core does the work (``native/src/ring/``, ``segment.rs``, ``core/``); this module
makes the files and removes them.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable

from sfm_kernel._native import (
    ARENA_BYTES,
    RING_BYTES,
    Channel,
    Inbox,
    is_arena_size,
    is_ring_size,
)
from sfm_kernel.errors import PeerLost
from sfm_kernel.transport.base import Member, Route, Transport

SMALL = 1 << 28
"""A folder with fewer bytes than this, such as a container's 64 MiB, gets rings of a quarter of the
usual size: sixteen processes that all talk to each other then need 17 MiB, and not all of it."""


def ring_bytes(folder: str) -> int:
    """The size of a ring in this folder, in bytes.

    ``SFM_RING_BYTES``, a power of two, or the default, which is less if there is little room.
    """
    text = os.environ.get("SFM_RING_BYTES", "")
    if not text:
        disk = os.statvfs(folder)
        return RING_BYTES if disk.f_blocks * disk.f_frsize >= SMALL else RING_BYTES // 4
    if not (text.isdigit() and is_ring_size(int(text))):
        raise ValueError(f"SFM_RING_BYTES={text!r}: give a power of two from 4096 to 2**30")
    return int(text)


def arena_bytes() -> int:
    """The arena's size in bytes: ``SFM_ARENA_BYTES``, 0 for none, or the default."""
    text = os.environ.get("SFM_ARENA_BYTES", "")
    if not text:
        return ARENA_BYTES
    if not (text.isdigit() and is_arena_size(int(text))):
        raise ValueError(f"SFM_ARENA_BYTES={text!r}: give a multiple of 4096 up to 2**40, or 0")
    return int(text)


def segment_path(folder: str, uid: str) -> str:
    """The path of the segment of the process ``uid``."""
    return os.path.join(folder, f"{uid}.seg")


class ShmTransport(Transport):
    """Reaches the processes whose segments lie in the same folder of the same machine.

    An open segment proves that memory is shared: the transport compares its uid, so that it does
    not mistake two machines (or containers) with the same host name for one.
    """

    kind = "shm"

    def __init__(self, member: Member, folder: str, inbox: Inbox) -> None:
        self._member, self._folder, self._inbox = member, folder, inbox

    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        path = segment_path(self._folder, peer.uid)
        if not os.path.exists(path):
            return None

        def check() -> None:
            if not alive():
                raise PeerLost(peer.name, "and did not receive this message")

        try:
            channel = Channel.ring(
                self._inbox,
                path,
                peer.uid,
                self._member.slot,
                ring_bytes(self._folder),
                arena_bytes(),
                peer.name,
                self._member.name,
                check,
            )
        except FileNotFoundError:
            return None
        return Route(peer, channel)

    def is_near(self, peer: Member) -> bool:
        return os.path.exists(segment_path(self._folder, peer.uid))

    def close(self) -> None:
        """Remove the segment, and the rings to this process that it never opened.

        Rings to others stay until their reader opens them, so that sent messages are received.
        """
        rings = glob.glob(f"*-{self._member.uid}.ring", root_dir=self._folder)
        for file in [f"{self._member.uid}.seg", *rings]:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._folder, file))
