"""The worlds of a launch: ranks that have one MPI_COMM_WORLD, and the spawned ones among them.

All processes of a launch share one folder (``SFM_MPI_WORLD``), in which each is known by its
number in the launch. The ranks of a spawned world count from 0 again; the numbers go on.
"""

from __future__ import annotations

import os
import signal
import socket
from typing import Any, NamedTuple

from sfm_kernel.directory import root
from sfm_kernel.mpi.launch.child import Child

_LAUNCHES = 1024
"""As many launches have a number of their own at a time: see native/mpi/src/process.rs."""

MOST = 1 << 14
"""Processes that a launch can start in its life."""

_RANK, _SIZE = ("PMI_RANK", "MPI_LOCALRANKID"), ("PMI_SIZE", "MPI_LOCALNRANKS")
"""What MPICH's launcher calls them, as scripts read them that call no MPI."""

_OF_OTHERS = (
    "SFM_DIRECTORY", "SFM_KEY", "SFM_MPI_APPNUM", "SFM_MPI_FIRST", "SFM_MPI_PARENT",
    "SFM_MPI_UNIVERSE",
)  # fmt: skip
"""Variables that no rank inherits: of a world between machines, and of an outer launcher."""


class RankId(NamedTuple):
    """The number of a process in the launch; its world; its rank there."""

    nth: int
    world: int
    rank: int

    def __str__(self) -> str:
        return f"rank {self.rank}" + (f" of spawned world {self.world}" if self.world else "")

    @property
    def label(self) -> str:
        """The start of its lines of output."""
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

    def next_rank(self) -> RankId:
        """The rank that is started next."""
        rank = len(self.children)
        return RankId(self.first + rank, self.number, rank)

    def environment(self) -> dict[str, str]:
        """What tells the next rank which one it is."""
        rank, size = str(len(self.children)), str(self.size)
        told = dict.fromkeys(("SFM_MPI_RANK", *_RANK), rank)
        told |= dict.fromkeys(("SFM_MPI_SIZE", *_SIZE), size)
        return told | ({"SFM_MPI_FIRST": str(self.first)} if self.first else {})

    def is_done(self) -> bool:
        """Whether no rank needs another any more."""
        done = all(child.finished or child.status is not None for child in self.children)
        return done and len(self.children) == self.size

    def release_if_done(self) -> None:
        """Let the ranks leave once none may be sent to any more. Connected worlds have parted, or
        end together."""
        if self.is_done():
            for child in self.children:
                child.release()

    def joined(self) -> None:
        """Called when a rank has come to MPI_Init."""

    def refuse(self, why: str) -> bool:
        """Whether its start has failed, which this call says of one that is not complete."""
        return False

    def absent(self) -> Child | None:
        """A rank that has ended without MPI_Init, in which others wait for it; None: no such."""
        if any(child.joined for child in self.children):
            for child in self.children:
                if not child.joined and (child.finished or child.status == 0):
                    return child
        return None


class Spawned(World):
    """A world that a rank has asked for, and waits for.

    Attributes:
        refused: it could not be started, and the rank has been told why.
    """

    def __init__(self, number: int, first: int, sizes: list[int], asker: Child) -> None:
        super().__init__(number, first, sum(sizes))
        self._sizes, self._asker = sizes, asker
        self._answered = self.refused = False

    def joined(self) -> None:
        """Answer the rank that has asked, once all have come to MPI_Init."""
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


def environment(world: str, launch: int, universe: int | None) -> dict[str, str]:
    """The environment that all ranks of a launch share.

    Args:
        world, launch: the name and the number of this launch.
        universe: what MPI_UNIVERSE_SIZE says, if it is set.
    """
    shared = {name: os.environ[name] for name in os.environ if name not in _OF_OTHERS}
    shared |= {"SFM_MPI_WORLD": world, "SFM_MPI_LAUNCH": str(launch), "SFM_DIR": root()}
    return shared | ({"SFM_MPI_UNIVERSE": str(universe)} if universe is not None else {})


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
