"""Shared memory: one ring for each pair that talks, made on first use.

The native core does the work (``native/src/ring/``, ``segment.rs``, ``core/``); this module
makes the files and removes them.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Callable

from sfm_kernel._native import Channel, Inbox, Member, arena_bytes, ring_bytes
from sfm_kernel.errors import PeerLost
from sfm_kernel.transport.base import Route, Transport


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
