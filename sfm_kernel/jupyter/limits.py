"""Limits of a user's engines on this machine: how many there are, and the memory of each.

Both guard against accidents. A user who may run programs may run any: what nobody can exceed is
the limit of the container, or of the control group, in which the hub runs the user's server.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

from sfm_kernel.directory import root
from sfm_kernel.directory.cleaning import SITES
from sfm_kernel.directory.folders import make_root
from sfm_kernel.errors import LimitReached
from sfm_kernel.jupyter.settings import Settings, size, size_in_words
from sfm_kernel.observe.snapshot import states
from sfm_kernel.observe.states import parse

MEMORY = "SFM_MEMORY_LIMIT"
"""The environment variable with the bytes that an engine may take for itself."""

_PATIENCE = 90.0
"""Seconds for another notebook to start its engines; that one gives up sooner."""


class Room:
    """The right to start engines; one process of a user has it at a time.

    Engines are counted where they are seen, in the segments of the living: nothing is left to be
    set right when a notebook is killed. Between two looks nobody else may start any: who starts
    some holds a lock until they are there, which the system drops with the process. Where no
    number is set, nothing is locked or counted.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock: int | None = None

    def take(self, wanted: int, world: str = "") -> None:
        """Have the right until ``leave``, for so many engines of this world all in all.

        Blocks: while another process of the user starts engines.
        Raises:
            LimitReached: with the user's other worlds these are too many; nobody has the right.
        """
        most = self._settings.max_engines
        if not most or self._lock is not None:
            return
        self._lock = self._locked()
        try:
            others = sum(1 for _ in _engines_beside(world))
            if wanted + others > most:
                raise LimitReached(_too_many(self._settings.place, most, others))
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Give the right back; harmless when repeated."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            os.close(lock)

    def _locked(self) -> int:
        fd = os.open(make_root(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        deadline = time.monotonic() + _PATIENCE
        try:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return fd
                if time.monotonic() > deadline:
                    raise LimitReached(
                        "another notebook of yours has been starting engines for "
                        f"{_PATIENCE:.0f} s: stop that cell, or restart its kernel"
                    )
                time.sleep(0.02)
        except BaseException:
            os.close(fd)
            raise


def _too_many(place: str, most: int, others: int) -> str:
    allows = f"{place} allows {most} engine{'' if most == 1 else 's'} for each user"
    if not others:
        return f"{allows}: `%sfm start {most}`"
    runs = f"{others} run{'s' if others == 1 else ''} in another notebook or from the panel"
    those = "that one" if others == 1 else "those"
    if others < most:
        return f"{allows}, and {runs}: ask for {most - others} at most, or stop {those}"
    return f"{allows}, and {runs}: stop {those} first, with `%sfm stop` or in the panel"


def _engines_beside(world: str) -> Iterator[object]:
    """The living engines of this user in all worlds of this machine but one."""
    for folder in _folders(world):
        with contextlib.suppress(OSError):  # it has just ended
            for state in states(folder):
                if state["alive"] and parse(state["info"]).get("kind") == "engine":
                    yield state["uid"]


def _folders(world: str) -> Iterator[str]:
    top = root()
    for name in os.listdir(top):
        path = os.path.join(top, name)
        if name.endswith(SITES):  # each site has a folder of that world
            of = name.removesuffix(SITES)
            if of != world and os.path.isdir(path):
                yield from (os.path.join(path, site, of) for site in os.listdir(path))
        elif name != world and os.path.isdir(path):
            yield path


def buffering(memory_limit: int) -> int:
    """Bytes that a sender may leave unreceived in the inbox of an engine with that much memory.

    What waits in an inbox takes several times its length where messages are small, and eight
    senders are usual: together they may fill half of what such an engine has left at its start.
    """
    return max(1 << 16, memory_limit // 128)


def limit_memory() -> None:
    """Have this process, an engine, take no more memory for itself than the environment says.

    RLIMIT_DATA counts what is private and writable: the heap, arrays, stacks of threads. It does
    not count messages in shared memory, or what is only reserved, as RLIMIT_AS would.
    """
    if not (told := os.environ.get(MEMORY)):
        return
    with contextlib.suppress(ValueError):  # whoever starts engines says so
        if wanted := size(told):
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            wanted = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def limit_buffering(endpoint: Any, memory_limit: int | None = None) -> None:
    """Have this sender fill no inbox of engines whose memory is limited; as in the environment."""
    if memory_limit is None:
        with contextlib.suppress(ValueError):
            memory_limit = size(os.environ.get(MEMORY) or "0")
    if memory_limit:
        endpoint.buffering = min(endpoint.buffering, buffering(memory_limit))


def memory_note(restart: str) -> str:
    """What to do about a MemoryError in a process that ``limit_memory`` has limited; else "".

    Args:
        restart: the command that starts the process again.
    """
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY or MEMORY not in os.environ:
        return ""
    may, has = size_in_words(limit), size_in_words(_taken())
    return (
        f"This engine may take {may} of memory, and has {has}. "
        f"Make the data smaller, `del` what is not needed any more, or `{restart}`"
    )


def _taken() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * resource.getpagesize()
