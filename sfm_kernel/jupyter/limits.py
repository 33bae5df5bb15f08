"""Limits of a user's engines on this machine: their number, and the memory of each.

Both guard against accidents. A user who may run programs may run any program: only the limit of
the container or control group in which the hub runs the user's server cannot be exceeded.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import time
from collections.abc import Iterator
from typing import Any

from sfm_kernel.directory import SITES, make_root, root
from sfm_kernel.errors import LimitReached, limit_named
from sfm_kernel.jupyter.settings import Settings, size, size_in_words
from sfm_kernel.observe.snapshot import states
from sfm_kernel.observe.states import parse
from sfm_kernel.transport.address import raise_descriptors

MEMORY = "SFM_MEMORY_LIMIT"
"""The environment variable with the bytes of private memory that an engine may use."""

_PATIENCE = 90.0
"""Seconds that another notebook has to start its engines; it gives up sooner itself."""

_CONTROLLER, _EACH_ENGINE = 120, 8
"""Files that a controller has open, and those that each engine adds; somewhat rounded up."""


class StartPermit:
    """The permit to start engines; one process of a user has it at a time.

    Engines are counted in the segments of living processes, so nothing has to be corrected when a
    notebook is killed. A process that starts engines holds a lock until they are in the world, so
    that no other process starts engines between the count and the start; the system releases the
    lock with the process. Without a limit nothing is locked or counted.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock: int | None = None

    def acquire(self, requested: int, world: str = "") -> None:
        """Hold the permit until ``release``, for this number of engines of the world in total.

        Blocks: while another process of the user starts engines.
        Raises:
            LimitReached: with the user's other worlds these are too many; the permit is not held.
        """
        most = self._settings.max_engines
        if not most or self._lock is not None:
            return
        self._lock = self._acquire_lock()
        try:
            others = sum(1 for _ in _engines_beside(world))
            if requested + others > most:
                raise LimitReached(_too_many(self._settings.scope, most, others))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the permit; harmless when repeated."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            os.close(lock)

    def _acquire_lock(self) -> int:
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


def _too_many(scope: str, most: int, others: int) -> str:
    allows = f"{scope} allows each user {most} engine{'' if most == 1 else 's'}"
    if not others:
        return f"{allows}: `%sfm start {most}`"
    verb = "is" if others == 1 else "are"
    runs = f"{others} {verb} running in another notebook or from the panel"
    those = "that one" if others == 1 else "those"
    if others < most:
        return f"{allows}, and {runs}: ask for {most - others} at most, or stop {those}"
    return f"{allows}, and {runs}: stop {those} first, with `%sfm stop` or in the panel"


def _engines_beside(world: str) -> Iterator[object]:
    """The living engines of this user in all worlds of this machine but this one."""
    for folder in _folders(world):
        with contextlib.suppress(OSError):  # the world has just ended
            for state in states(folder):
                if state["alive"] and parse(state["info"]).get("kind") == "engine":
                    yield state["uid"]


def _folders(world: str) -> Iterator[str]:
    top = root()
    for name in os.listdir(top):
        path = os.path.join(top, name)
        if name.endswith(SITES):  # each site has a folder of that world
            other = name.removesuffix(SITES)
            if other != world and os.path.isdir(path):
                yield from (os.path.join(path, site, other) for site in os.listdir(path))
        elif name != world and os.path.isdir(path):
            yield path


def check_descriptors(engines: int) -> None:
    """Let this process and its children have as many files open as so many engines need.

    Raises SystemLimit if they may not: the controller would hang rather than fail.
    """
    needed = _CONTROLLER + _EACH_ENGINE * engines
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        raise_descriptors()
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < needed:
            raise limit_named(OSError(errno.EMFILE, ""))


def limit_memory() -> None:
    """Limit the private memory of this process, an engine, as the environment says.

    RLIMIT_DATA counts private writable memory: the heap, arrays, stacks of threads. It does not
    count messages in shared memory, or memory that is only reserved, as RLIMIT_AS would.
    """
    if not (text := os.environ.get(MEMORY)):
        return
    with contextlib.suppress(ValueError):  # the process that starts engines reports the error
        if requested := size(text):
            most = resource.getrlimit(resource.RLIMIT_DATA)[1]
            requested = requested if most == resource.RLIM_INFINITY else min(requested, most)
            resource.setrlimit(resource.RLIMIT_DATA, (requested, requested))


def limit_buffering(endpoint: Any, memory_limit: int | None = None) -> None:
    """Limit what this sender leaves in an inbox, if the engines' memory is limited.

    Small messages take several times their length in an inbox, and eight senders are usual:
    together they may fill half of the memory that such an engine has free at its start.

    Args:
        memory_limit: bytes of each engine; without it the environment's.
    """
    if memory_limit is None:
        with contextlib.suppress(ValueError):
            memory_limit = size(os.environ.get(MEMORY) or "0")
    if memory_limit:
        endpoint.buffering = min(endpoint.buffering, max(1 << 16, memory_limit // 128))


def memory_note(restart: str) -> str:
    """Advice for a MemoryError in a process that ``limit_memory`` has limited; otherwise "".

    Args:
        restart: the command that starts the process again.
    """
    limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY or MEMORY not in os.environ:
        return ""
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    return (
        f"This engine may use {size_in_words(limit)} of memory, and uses {size_in_words(used)}. "
        f"Make the data smaller, `del` what is no longer needed, or `{restart}`"
    )
