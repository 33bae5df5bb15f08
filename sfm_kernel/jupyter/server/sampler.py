"""Reads this user's worlds on this machine, each only when something may have changed in it.

Reading blocks, so threads do it. ``observe`` is imported when it is first needed: every JupyterLab
of the environment loads this extension, including those that show no world.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sfm_kernel.directory import check_private, check_world, root, worlds
from sfm_kernel.errors import BadName, WorldAccess
from sfm_kernel.jupyter.server.clusters import Cluster, Clusters, entry
from sfm_kernel.jupyter.server.remote import RemoteWorld
from sfm_kernel.jupyter.server.usage import Usage
from sfm_kernel.jupyter.titles import names_of

HEARTBEAT = 1.0
"""Seconds after which a snapshot is taken again even if nothing seems to have changed."""

CALM = 3.0
"""Seconds after the last change in which a diagnosis may still change: proofs take time."""

PAUSE = 0.5
"""Least seconds between two diagnoses; each reads everything."""

TRACE_PAUSE = 0.2
"""Least seconds between two readings of the traces: most messages are then reported once, when
they have arrived, and not twice."""

HASTE = 500
"""Messages of one process after which its trace is read at once: it holds 4096 events."""

SECOND_THOUGHT = 5.0
"""Seconds after which a diagnosis is made again even if nothing has changed."""

News = dict[str, Any] | None
"""The new rows of a timeline, as ``observe.timeline`` has them; None if there are none."""


class UnknownWorld(LookupError):
    """There is no such world of this user."""


class World:
    """One world of this user.

    Args:
        remotes: the worlds that have processes on other machines, by name.
    Attributes:
        snapshots, diagnoses, timeline: the latest readings.
        observer: keeps the segments mapped while a panel shows the world; None otherwise, since
            mapped memory outlives the world.
    """

    def __init__(
        self, name: str, folder: str, remotes: Mapping[str, RemoteWorld] = MappingProxyType({})
    ) -> None:
        self.name, self.folder, self._remotes = name, folder, remotes
        self.observer: Any = None
        self.snapshots = Snapshots(self)
        self.diagnoses = Diagnoses(self)
        self.timeline = Timeline(self)
        self._usage = Usage()

    @property
    def remote(self) -> RemoteWorld | None:
        """Its processes on other machines; None if it has none, as far as is known."""
        return self._remotes.get(self.name)

    def keep_mapped(self) -> None:
        """Keep the segments mapped from now on, until ``observer`` is set to None."""
        from sfm_kernel.observe import Observer

        self.observer = self.observer or Observer()

    def measure(self) -> dict[str, Any]:
        """What the processes use of this machine; raises FileNotFoundError like ``sample``."""
        return self._usage.read(self.name, self.snapshots.read(HEARTBEAT)["processes"])

    def sample(self, follow: bool, complete: bool) -> tuple[News, News]:
        """Read the snapshot, and with ``follow`` the timeline; returns as ``Timeline.read``.

        Raises FileNotFoundError if the world has ended.
        """
        self.snapshots.read()
        return self.timeline.read(complete) if follow else (None, None)


class Snapshots:
    """The newest snapshot of a world.

    Taking a snapshot wakes every process of the world, and costs many times as much as reading
    their counters. The counters may not show everything: hence ``HEARTBEAT``. Processes on other
    machines are shown as in the directory server's last report; the server is not asked here.

    Attributes:
        newest: the snapshot, another object whenever it has changed; None before the first reading.
        moves: the number of changes. The current line of a process that computes does not count: it
            is updated with the heartbeat only.
    """

    def __init__(self, world: World) -> None:
        self.newest: dict[str, Any] | None = None
        self.moves = 0
        self._world = world
        self._lock = threading.Lock()
        self._pulse: object = None
        self._moving = True  # whether the last reading has found a change
        self._due = 0.0
        self._read_at = -math.inf

    def read(self, age: float = 0.0) -> dict[str, Any]:
        """The newest snapshot. Waits a moment for each process that is stopped.

        Args:
            age: the greatest age (s) of an earlier reading that may be returned instead.
        Raises:
            FileNotFoundError: the world has ended.
        """
        from sfm_kernel.observe.snapshot import pulse, snapshot

        world = self._world
        with self._lock:
            now = time.monotonic()
            if self.newest is not None and now - self._read_at < age:
                return self.newest
            remote, seen = world.remote, None
            # During changes, reading the counters first is not worth it. After a change there is
            # always one more snapshot: a message may have been between two processes.
            if not self._moving:  # the version first: a later report leads to another reading
                version = remote.version if remote else 0
                seen = pulse(world.folder, world.observer), remote, version
            if self.newest is not None and seen and seen == self._pulse and now < self._due:
                self._read_at = now
                return self.newest
            fresh = snapshot(world.folder, remote.states if remote else (), world.observer)
            before = self.newest["processes"] if self.newest else None
            self._moving = before is None or _settled(before) != _settled(fresh["processes"])
            self._pulse, self._due, self._read_at = seen, now + HEARTBEAT, now
            self.moves += self._moving
            if self.newest is None or before != fresh["processes"]:
                self.newest = fresh
            return self.newest


def _settled(processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The part of a snapshot that changes only when something happens."""
    return [process | {"now": None} for process in processes]


class Diagnoses:
    """Why a world does not go on.

    Attributes:
        newest: the diagnosis, another object whenever it has changed; None before the first one.
    """

    def __init__(self, world: World) -> None:
        self.newest: dict[str, Any] | None = None
        self._world = world
        self._seen = -1  # the world's number of changes at the last reading
        self._moved_at = self._made_at = 0.0

    def read(self) -> dict[str, Any]:
        """The newest diagnosis. For one thread: that of ``World.remote``, if there is one.

        Raises FileNotFoundError if the world has ended.
        """
        snapshots = self._world.snapshots
        snapshots.read(PAUSE / 2)  # updates ``moves``
        now = time.monotonic()
        moved = snapshots.moves != self._seen
        if moved:
            self._moved_at = now
        calm = now > self._moved_at + CALM
        pause = SECOND_THOUGHT if calm else PAUSE
        if self.newest is not None and now < self._made_at + pause:
            return self.newest
        self._seen = snapshots.moves
        fresh = self._explain()
        self._made_at = time.monotonic()
        if self.newest is None or _essence(fresh, moved) != _essence(self.newest, moved):
            self.newest = fresh
        return self.newest

    def _explain(self) -> dict[str, Any]:
        from sfm_kernel.observe.explain import explain

        folder, remote, observer = self._world.folder, self._world.remote, self._world.observer
        if remote is None:
            return explain(folder, observer=observer)
        view = remote.view()
        if view is None:
            return _unknown(self._world.name, remote.problem)
        return explain(folder, remote=view.states, observer=observer)


def _unknown(world: str, why: str) -> dict[str, Any]:
    """The diagnosis of a world that may have unknown processes.

    No process is stuck that may wait for one of them.
    """
    return {
        "world": world,
        "time": time.time(),
        "verdict": "waiting",
        "cycle": [],
        "stuck": [],
        "since": None,
        "title": "Nothing is known of this world's processes on other machines",
        "sentences": [why] if why else [],
        "edges": [],
        "but_for": None,
        "processes": [],
    }


def _essence(diagnosis: dict[str, Any], moved: bool) -> dict[str, Any]:
    """The fields of a diagnosis that are compared: without changes, only durations differ."""
    if moved:
        return {**diagnosis, "time": 0}
    judgements = [{**judgement, "text": ""} for judgement in diagnosis["processes"]]
    return {**diagnosis, "time": 0, "title": "", "sentences": [], "processes": judgements}


class Timeline:
    """The events of a world since the first reading. Its snapshot must be current."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Lock()
        self._recorder: Any = None
        self._seen = -1
        self._read_at = -math.inf
        self._counts: dict[str, int] = {}

    def read(self, complete: bool) -> tuple[News, News]:
        """The news since the last call; and, if ``complete``, the complete timeline.

        Raises FileNotFoundError if the world has ended.
        """
        snapshots = self._world.snapshots
        with self._lock:
            moves, new = snapshots.moves, None
            if moves != self._seen and self._is_due():
                found = self._recording().update(snapshots.newest, self._world.observer)
                new = found if found["spans"] or found["flights"] else None
                self._seen = moves
            return new, self._recording().whole() if complete else None

    def trace(self) -> Any:
        """The last run in the format of Chrome's tracing and of Perfetto."""
        with self._lock:
            recorder = self._recording()
            recorder.read(self._world.snapshots.newest)
            self._seen = -1  # the next ``read`` returns these events, too
            return recorder.timeline().to_chrome()

    def _is_due(self) -> bool:
        """Whether to read the traces now, and not in a later call."""
        newest, now = self._world.snapshots.newest, time.monotonic()
        processes = newest["processes"] if newest else []
        counts = {process["uid"]: process["sent"] + process["received"] for process in processes}
        is_due = now - self._read_at >= TRACE_PAUSE or any(
            count - self._counts.get(uid, 0) > HASTE for uid, count in counts.items()
        )
        if is_due:
            self._read_at, self._counts = now, counts
        return is_due

    def _recording(self) -> Any:
        if self._recorder is None:
            from sfm_kernel.observe.timeline import Recorder

            self._recorder = Recorder(self._world.folder)
        return self._recorder


class Worlds:
    """The worlds of this user. Any thread may call."""

    def __init__(self) -> None:
        self._known: dict[str, World] = {}
        self._remotes: dict[str, RemoteWorld] = {}
        self._clusters = Clusters()
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """The worlds in which a process lives and that are closed to other users, by name."""
        try:
            return [name for name in worlds() if _is_private(name)]
        except WorldAccess:  # the root belongs to another user, and so do its worlds
            return []

    def find(self, name: str) -> World:
        """The world of this name.

        Raises UnknownWorld if there is none, it belongs to another user, or the name is not valid.
        """
        try:
            folder = os.path.join(root(), check_world(name))
        except BadName as problem:
            raise UnknownWorld(str(problem)) from None
        if not _is_private(name):
            raise UnknownWorld(f"there is no world {name!r} of yours. It may have ended just now")
        with self._lock:
            if name not in self._known:
                self._known[name] = World(name, folder, self._remotes)
            return self._known[name]

    def refresh(
        self, started: Mapping[str, str] = MappingProxyType({})
    ) -> dict[str, Cluster | None]:
        """The current worlds with their clusters; the others are forgotten.

        Afterwards ``World.remote`` is correct. Before, a world seems to have no processes on other
        machines, and a process that waits for one of them would be called stuck.

        Args:
            started: the clusters that were started from the panel, by world.
        """
        clusters = self._clusters.by_world()
        found = {name: clusters.get(name) for name in self.names()}
        self._connect(found)
        with self._lock:  # a new world may get the name of one that has ended
            inhabited = found.keys() | started
            self._known = {name: world for name, world in self._known.items() if name in inhabited}
        return found | {name: Cluster(identity) for name, identity in started.items()}

    def entries(self, kernels: Mapping[int, str], started: Mapping[str, str]) -> list[Any]:
        """The list of worlds as the panel shows it, without titles; see ``clusters.entry``."""
        found, clusters = [], self.refresh(started)
        names = names_of({one.identity: one.notebook for one in clusters.values() if one})
        for name, cluster in sorted(clusters.items()):
            with contextlib.suppress(UnknownWorld, OSError):  # it may end at any moment
                processes = self.find(name).snapshots.read()["processes"]
                called = names[cluster.identity] if cluster else None
                found.append(entry(name, processes, cluster, called, kernels, name in started))
        return found

    def close(self) -> None:
        """Disconnect from directory servers. Harmless when repeated."""
        self._connect({})

    def _connect(self, clusters: Mapping[str, Cluster | None]) -> None:
        """Know the directory servers of these clusters only; new ones are not asked yet."""
        with self._lock:
            for name, remote in list(self._remotes.items()):
                if not remote.belongs_to(clusters.get(name)):
                    self._remotes.pop(name).close()
            for name, cluster in clusters.items():
                if cluster and cluster.directory is not None and name not in self._remotes:
                    self._remotes[name] = RemoteWorld(name, cluster.directory, cluster.key)


def _is_private(name: str) -> bool:
    try:
        check_private(root())
        check_private(os.path.join(root(), name))
    except (OSError, WorldAccess):
        return False
    return True
