"""The processes of worlds on other machines, as the worlds' directory servers tell of them.

A directory server may be slow, silent or gone. So each has a thread of its own here, in which alone
is waited for it: neither the event loop, nor the threads that read this machine's memory, nor who
reads another world ever waits. They take what was told last. A server is asked when somebody who
watches its world wants that, and never else; what is told of a world in which all processes are on
this machine costs nothing, since it has no server.

The servers are those of this user's clusters (``origin``). A world's name is derived from the key
that its connection file holds, so that no file can name a world of which it has not got the key.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from sfm_kernel.errors import SFMError, WorldGone
from sfm_kernel.jupyter.server.origin import Cluster, Clusters

if TYPE_CHECKING:
    from sfm_kernel.jupyter.server.line import Line
    from sfm_kernel.relay.view import RemoteView

RETRY_SECONDS = 5.0
"""After a directory server has not answered, or refused us, it is left alone for so long."""

PATIENCE = 0.2
"""Seconds for which a picture waits for an answer; without one it shows what was told before."""


class Door:
    """The directory server of one world. Opened when it is first needed; any thread may call.

    Attributes:
        states: of the processes that it has told of, as ``snapshot`` takes them.
        version: how often they have changed.
        problem: why it could not be reached; "" if it was, or nobody has tried.
    """

    def __init__(self, world: str, url: str, key: bytes, log: logging.Logger) -> None:
        self.states: Sequence[dict[str, Any]] = ()
        self.version = 0
        self.problem = ""
        self._executor = ThreadPoolExecutor(1, "sfm-door")  # no thread before it is needed
        self._world, self._url, self._key, self._log = world, url, key, log
        self._lock, self._opening = threading.Lock(), threading.Lock()
        self._line: Line | None = None
        self._closed = False
        self._asked: Future[None] | None = None
        self._pulse: int | None = None
        self._retry_at = -math.inf

    @property
    def executor(self) -> Executor | None:
        """Has one thread: who waits for the server does so there. None if the door is closed."""
        return None if self._closed else self._executor

    def leads(self, cluster: Cluster) -> bool:
        """Whether it is the door to this cluster's world."""
        return (self._url, self._key) == (cluster.directory, cluster.key)

    def ask(self) -> Future[None]:
        """Have the server asked, unless that goes on already; returns at once.

        Returns: done when there is an answer, in ``states``, or when it is known that none comes.
        """
        with self._lock:
            if not self._closed and (self._asked is None or self._asked.done()):
                self._asked = self._executor.submit(self._look)
            return self._asked or _nothing()

    async def answer(self, seconds: float = PATIENCE) -> None:
        """Have the server asked; returns when it has answered, or after so many seconds."""
        await asyncio.wait({asyncio.wrap_future(self.ask())}, timeout=seconds)

    def reach(self) -> RemoteView | None:
        """What is seen through the server; None if it was never reached. For ``executor``.

        Blocks: up to ``line.OPEN_SECONDS`` for the first answer, once in ``RETRY_SECONDS``.
        """
        from sfm_kernel.jupyter.server.line import Line

        with self._opening:
            if self._line is None and not self._closed and time.monotonic() >= self._retry_at:
                try:
                    self._line = Line(self._world, self._url, self._key)
                    self.problem = ""
                except SFMError as problem:
                    self._give_up(problem)
            return self._line.view if self._line is not None else None

    def interrupt(self, uid: str) -> None:
        """Send SIGINT to a process, as a notebook's Stop button does. For ``executor``.

        Raises:
            WorldError: it did not get it; the message says why.
            WorldGone: the directory server does not answer.
        """
        view = self.reach()
        if view is None or time.monotonic() < self._retry_at:  # it will be silent once more
            raise WorldGone(self.problem or f"world {self._world!r} has no directory server")
        try:
            view.interrupt(uid)
        except WorldGone as problem:
            self._give_up(problem)
            raise

    def close(self) -> None:
        """Let go of the server, as soon as nobody waits for its answer; returns at once."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._executor.submit(self._leave)
            except RuntimeError:  # the interpreter ends: its threads have ended
                self._leave()
            self._executor.shutdown(wait=False)

    def _look(self) -> None:
        try:
            view = self.reach()
            if view is None:
                return
            pulse = view.pulse()
            if pulse != self._pulse:
                self._pulse, self.states = pulse, view.states()
                self.version += 1
        except Exception:  # noqa: BLE001 - the next answer may be one
            self._log.warning("sfm: no answer of %s's directory", self._world, exc_info=True)

    def _give_up(self, problem: SFMError) -> None:
        self._retry_at = time.monotonic() + RETRY_SECONDS
        if str(problem) != self.problem:
            self._log.warning("sfm: %s", problem)
        self.problem = str(problem)

    def _leave(self) -> None:
        with self._opening:
            line, self._line = self._line, None
        self.states = ()
        if line is not None:
            line.close()


def _nothing() -> Future[None]:
    """An answer that is there."""
    done: Future[None] = Future()
    done.set_result(None)
    return done


Find = Callable[[], Door | None]
"""Gives the door of a world, as long as that has a directory server."""


def nowhere() -> None:
    """For a world in which all processes are on this machine."""


class Doors:
    """Those of this user's worlds. Any thread may call."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._clusters = Clusters()
        self._doors: dict[str, Door] = {}
        self._lock = threading.Lock()

    def find(self, world: str) -> Door | None:
        """The door of a world; None where it has no directory server, as far as is known."""
        return self._doors.get(world)

    def learn(self, names: Collection[str]) -> dict[str, Cluster]:
        """The clusters by world; from now on the doors of worlds with these names are found."""
        clusters = self._clusters.by_world()
        self.keep_only({name: clusters[name] for name in names if name in clusters})
        return clusters

    def keep_only(self, clusters: Mapping[str, Cluster]) -> None:
        """Have doors for the clusters that have directory servers, by world, and close the others.

        Cost: connects to nobody; that comes with the first question.
        """
        with self._lock:
            before, kept = self._doors, {}
            for world, cluster in clusters.items():
                door = before.get(world)
                if door is not None and door.leads(cluster):
                    kept[world] = door
                elif cluster.directory is not None:
                    kept[world] = Door(world, cluster.directory, cluster.key, self._log)
            self._doors = kept
        for world, door in before.items():
            if kept.get(world) is not door:
                door.close()

    def close(self) -> None:
        """Close them all. Harmless when repeated."""
        self.keep_only({})
