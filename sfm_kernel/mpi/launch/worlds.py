"""The worlds of a launch: the ranks of the first MPI_COMM_WORLD, and of those that were spawned.

All processes of a launch share one folder (``SFM_MPI_WORLD``), in which each has its number in the
launch. The ranks of a spawned world begin at 0; the numbers in the launch continue.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from sfm_kernel.directory import root
from sfm_kernel.mpi import discovery
from sfm_kernel.mpi.launch.child import Child

_LAUNCHES = 1024
"""Number of launches that can have different numbers at a time: see native/mpi/src/process.rs."""

MOST = 1 << 14
"""Number of processes that a launch can start in its life."""

_RANK, _SIZE = ("PMI_RANK", "MPI_LOCALRANKID"), ("PMI_SIZE", "MPI_LOCALNRANKS")
"""The variables of MPICH's launcher, which scripts without MPI read."""

_OF_OTHERS = (
    "SFM_DIRECTORY", "SFM_KEY", "SFM_MPI_APPNUM", "SFM_MPI_FIRST", "SFM_MPI_PARENT",
    "SFM_MPI_UNIVERSE", "SFM_MPI_WORLDS", "PMI_FD", "OMPI_COMM_WORLD_SIZE",
)  # fmt: skip
"""Variables of a world between machines and of an outer launcher, ours or another MPI's (pmi.rs),
which no rank inherits."""


class RankId(NamedTuple):
    """The number of a process in the launch, its world, and its rank in that world."""

    number: int
    world: int
    rank: int

    def __str__(self) -> str:
        return f"rank {self.rank}" + (f" of spawned world {self.world}" if self.world else "")

    @property
    def label(self) -> str:
        """The prefix of its lines of output."""
        return f"[{self.world}:{self.rank}] " if self.world else f"[{self.rank}] "


class World:
    """The ranks of one MPI_COMM_WORLD.

    Attributes:
        number: 0 for the world of the command line.
        first: the number in the launch of its rank 0.
        children: the ranks that were started.
    """

    def __init__(self, number: int, first: int, size: int) -> None:
        self.number, self.first, self.size = number, first, size
        self.children: list[Child] = []

    def next_rank(self) -> RankId:
        """The identity of the next rank to start."""
        rank = len(self.children)
        return RankId(self.first + rank, self.number, rank)

    def environment(self) -> dict[str, str]:
        """The variables that identify the next rank."""
        rank, size = str(len(self.children)), str(self.size)
        variables = dict.fromkeys(("SFM_MPI_RANK", *_RANK), rank)
        variables |= dict.fromkeys(("SFM_MPI_SIZE", *_SIZE), size)
        return variables | ({"SFM_MPI_FIRST": str(self.first)} if self.first else {})

    def is_done(self) -> bool:
        """Whether no rank needs another any longer."""
        done = all(child.finished or child.status is not None for child in self.children)
        return done and len(self.children) == self.size

    def release_if_done(self) -> None:
        """Let the ranks leave when no message can be sent to them any longer. Connected worlds have
        disconnected, or end together."""
        if self.is_done():
            for child in self.children:
                child.release()

    def joined(self) -> None:
        """Called when a rank has reached MPI_Init."""

    def refuse(self, why: Callable[[], str]) -> bool:
        """Let the start of this world fail if it is not complete; whether it has failed."""
        return False

    def absent(self) -> Child | None:
        """A rank that has ended without MPI_Init, in which others wait for it; None if there is
        none."""
        if any(child.joined for child in self.children):
            for child in self.children:
                if not child.joined and (child.finished or child.status == 0):
                    return child
        return None


class Spawned(World):
    """A world that a rank has asked for, and waits for.

    Args:
        worlds: the worlds that were started before.
        sizes: for each of its programs, the number of processes.
        asker: the rank.
    Attributes:
        refused: whether it could not be started; the rank then knows the reason.
    """

    def __init__(self, worlds: Sequence[World], sizes: list[int], asker: Child) -> None:
        firsts = [world.first for world in worlds]
        first = sum(world.size for world in worlds)
        super().__init__(len(worlds), first, sum(sizes))
        self._sizes, self._asker = sizes, asker
        self._worlds = [*firsts, first, first + self.size]
        self._answered = self.refused = False

    def environment(self) -> dict[str, str]:
        """The variables that identify the next rank; it also knows all worlds (process.rs)."""
        return super().environment() | {"SFM_MPI_WORLDS": " ".join(map(str, self._worlds))}

    def joined(self) -> None:
        """Answer the rank that has asked, when all ranks have reached MPI_Init."""
        joined = [child for child in self.children if child.joined]
        if not self._answered and len(joined) == self.size:
            self._answer(first=self.first, sizes=self._sizes, worlds=self._worlds)

    def refuse(self, why: Callable[[], str]) -> bool:
        """End the world if it is not complete; returns whether its start has failed."""
        if not self._answered:
            self.refused = True
            self._answer(error=why())
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
        universe: the value of MPI_UNIVERSE_SIZE, or None.
    """
    shared = {name: os.environ[name] for name in os.environ if name not in _OF_OTHERS}
    shared |= {"SFM_MPI_WORLD": world, "SFM_MPI_LAUNCH": str(launch), "SFM_DIR": root()}
    with suppress(OSError):  # no file can be written: ranks in C do without
        shared |= discovery.variables()
    return shared | ({"SFM_MPI_UNIVERSE": str(universe)} if universe is not None else {})


def claim() -> tuple[socket.socket, int]:
    """A number that no other launch of this user has while the socket is open."""
    held, begin = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), os.getpid() % _LAUNCHES
    for more in range(_LAUNCHES):
        number = (begin + more) % _LAUNCHES
        try:
            held.bind(f"\0sfm-mpi-{os.geteuid()}-launch-{number}")
        except OSError:
            continue
        return held, number
    return held, begin
