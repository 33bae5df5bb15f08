"""The worlds of a launch: ranks that have one MPI_COMM_WORLD, and the spawned ones among them.

All of a launch's processes share one folder (``SFM_MPI_WORLD``), in which each is known by its
number in the launch. A spawned world's ranks count from 0 again; the numbers go on.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import Any, NamedTuple

from sfm_kernel.mpi.launch.child import Child

_LAUNCHES = 1024
"""As many launches have a number of their own at a time: see native/mpi/src/process.rs."""

MOST = 1 << 14
"""Processes that a launch can start in its life."""

_RANK, _SIZE = ("PMI_RANK", "MPI_LOCALRANKID"), ("PMI_SIZE", "MPI_LOCALNRANKS")
"""What MPICH's launcher calls them, as scripts read them that call no MPI."""


class Place(NamedTuple):
    """Which rank of which world a process is, and which of all that the launcher has started."""

    nth: int
    world: int
    rank: int

    def __str__(self) -> str:
        return f"rank {self.rank}" + (f" of spawned world {self.world}" if self.world else "")

    @property
    def label(self) -> str:
        """What its lines begin with."""
        return f"[{self.world}:{self.rank}] " if self.world else f"[{self.rank}] "


class World:
    """The ranks of one MPI_COMM_WORLD.

    Attributes:
        number: 0 for the one that the command line has named.
        first: which process of the launch has rank 0.
        children: the ranks that were started.
    """

    def __init__(self, number: int, first: int, size: int) -> None:
        self.number, self.first, self.size = number, first, size
        self.children: list[Child] = []

    def place(self) -> Place:
        """That of the next rank."""
        rank = len(self.children)
        return Place(self.first + rank, self.number, rank)

    def environment(self) -> dict[str, str]:
        """By which the next rank knows its place."""
        rank, size = str(len(self.children)), str(self.size)
        told = dict.fromkeys(("SFM_MPI_RANK", *_RANK), rank)
        told |= dict.fromkeys(("SFM_MPI_SIZE", *_SIZE), size)
        return told | ({"SFM_MPI_FIRST": str(self.first)} if self.first else {})

    def is_done(self) -> bool:
        """Whether nobody of it needs anybody any more."""
        done = all(child.finished or child.status is not None for child in self.children)
        return done and len(self.children) == self.size

    def release_if_done(self) -> None:
        """Nobody leaves while another may still send to it. Connected worlds have parted, or end
        together."""
        if self.is_done():
            for child in self.children:
                child.release()

    def joined(self) -> None:
        """Somebody has come to MPI_Init."""

    def refuse(self, why: str) -> bool:
        """Whether it has not been started as it was asked for, and now will not be."""
        return False

    def absent(self) -> Child | None:
        """One that has ended without MPI_Init, in which others wait for it."""
        if any(child.joined for child in self.children):
            for child in self.children:
                if not child.joined and (child.finished or child.status == 0):
                    return child
        return None


class Spawned(World):
    """One that a rank has asked for, and waits for.

    Attributes:
        refused: it could not be started, and is nobody's concern any more.
    """

    def __init__(self, number: int, first: int, sizes: list[int], asker: Child) -> None:
        super().__init__(number, first, sum(sizes))
        self._sizes, self._asker = sizes, asker
        self._answered = self.refused = False

    def joined(self) -> None:
        """Tell who has asked, should all have come to MPI_Init."""
        joined = [child for child in self.children if child.joined]
        if not self._answered and len(joined) == self.size:
            self._answer(first=self.first, sizes=self._sizes)

    def refuse(self, why: str) -> bool:
        """End it, as its start has failed; False if it has been started."""
        if not self._answered:
            self.refused = True
            self._answer(error=why)
            for child in self.children:
                if child.status is None:
                    child.signal(signal.SIGKILL)
        return self.refused

    def _answer(self, **words: Any) -> None:
        self._answered = True
        self._asker.answer(words)


def claim() -> tuple[socket.socket, int]:
    """A number that no other launch of this user has as long as the socket is open."""
    held, begin = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), os.getpid() % _LAUNCHES
    for more in range(_LAUNCHES):
        number = (begin + more) % _LAUNCHES
        try:
            held.bind(f"\0sfm-mpi-{os.geteuid()}-launch-{number}")
        except OSError:
            continue
        return held, number
    return held, begin
