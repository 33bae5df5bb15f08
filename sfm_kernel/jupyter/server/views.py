"""What is known of one world: its picture, why it does not go on, what happened.

Each is read again only when something may have changed, and counts its versions. All of it blocks,
and is called in threads. ``observe`` is imported when it is first needed: every JupyterLab of the
environment loads this extension, also those that show no world.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from sfm_kernel.jupyter.server.elsewhere import Door, Find, nowhere

HEARTBEAT = 1.0
"""Seconds after which a picture is taken again although nothing seems to have moved."""

CALM = 3.0
"""Seconds after the last movement during which a diagnosis may still change: proofs take time."""

PAUSE = 0.5
"""Seconds between two diagnoses at least; they look at everything."""

TRACE_PAUSE = 0.2
"""Seconds between two looks at the traces at least: most messages are then told of once, when they
have arrived, and not twice."""

HASTE = 500
"""Messages of one process after which its trace is read all the same: it keeps 4096 events."""

SECOND_THOUGHT = 5.0
"""Seconds after which a diagnosis is made again although nothing has moved."""


class Picture:
    """The newest snapshot of a world.

    To take one wakes every process of the world, and costs many times as much as a look at their
    counters. Those may not tell of everything: hence ``HEARTBEAT``. Of other machines it has what
    the door was told last, and does not ask.

    Args:
        door: gives the door to the world's processes on other machines.
    Attributes:
        newest: as ``observe.snapshot``; None before the first look.
        version: how often it has changed; its counters tell of everything that happens.
        moves: how often something has happened. Who computes goes from line to line, and that is
            looked at with the heartbeat only.
    """

    def __init__(self, folder: str, door: Find = nowhere) -> None:
        self.newest: dict[str, Any] | None = None
        self.version = self.moves = 0
        self._folder, self._door = folder, door
        self._lock = threading.Lock()
        self._pulse: tuple[int, Door | None, int] | None = None
        self._changes = True  # it differed the last time
        self._due = 0.0
        self._looked_at = -math.inf

    def look(self, age: float = 0.0, observer: Any = None) -> None:
        """Bring the picture up to date. Waits a moment for each process that is stopped.

        Args:
            age: a look that somebody has taken at most so many seconds ago will do.
            observer: as for ``snapshot``.
        Raises:
            FileNotFoundError: the world is gone.
        """
        from sfm_kernel.observe.snapshot import pulse, snapshot

        with self._lock:
            now = time.monotonic()
            if now - self._looked_at < age:
                return
            # Not while something happens all the time. And after a change always once more: a
            # message may be between two processes for a moment.
            door = self._door()
            told = door.version if door else 0  # first: what is told meanwhile is looked at again
            seen = None if self._changes else (pulse(self._folder, observer), door, told)
            if seen is not None and seen == self._pulse and now < self._due:
                self._looked_at = now
                return
            fresh = snapshot(self._folder, door.states if door else (), observer)
            before, after = (self.newest or {}).get("processes"), fresh["processes"]
            self._changes = before is None or _moving(before) != _moving(after)
            self._pulse, self._due, self._looked_at = seen, now + HEARTBEAT, now
            self.moves += self._changes
            if before != after:
                self.newest = fresh
                self.version += 1


def _moving(processes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What changes only when something happens."""
    return [one | {"now": None} for one in processes]


class Diagnosis:
    """Why a world does not go on.

    Args:
        door: gives the door to the world's processes on other machines.
    Attributes:
        newest: as ``observe.explain``; None before the first look.
        version: how often it has changed.
    """

    def __init__(self, folder: str, picture: Picture, door: Find = nowhere) -> None:
        self.newest: dict[str, Any] | None = None
        self.version = 0
        self._folder, self._picture, self._door = folder, picture, door
        self._seen = -1  # how often the picture had moved, the last time
        self._moved_at = self._made_at = 0.0

    def look(self, observer: Any = None) -> None:
        """Bring it up to date. For one thread; where the world has a door, for that one's.

        Raises FileNotFoundError when the world is gone.
        """
        self._picture.look(PAUSE / 2, observer)  # only to see whether anything moves
        now = time.monotonic()
        moved = self._picture.moves != self._seen
        if moved:
            self._moved_at = now
        calm = now > self._moved_at + CALM
        if self.newest is not None and now < self._made_at + (SECOND_THOUGHT if calm else PAUSE):
            return
        self._seen = self._picture.moves
        fresh = self._explain(observer)
        self._made_at = time.monotonic()
        if self.newest is None or _essence(fresh, moved) != _essence(self.newest, moved):
            self.newest = fresh
            self.version += 1

    def _explain(self, observer: Any) -> dict[str, Any]:
        from sfm_kernel.observe.explain import explain

        door = self._door()
        if door is None:
            return explain(self._folder, observer=observer)
        view = door.reach()
        if view is None:
            return _unknown(self._folder, door.problem)
        return explain(self._folder, remote=view.states, observer=observer)


def _unknown(folder: str, why: str) -> dict[str, Any]:
    """The diagnosis of a world that may have processes of which nothing is known.

    Who waits for one of those must not be called stuck.
    """
    title = "Nothing is known of this world's processes on other machines"
    return {
        "world": folder.rstrip("/").rpartition("/")[2],
        "time": time.time(),
        "verdict": "waiting",
        "cycle": [],
        "stuck": [],
        "since": None,
        "title": title,
        "sentences": [why] if why else [],
        "edges": [],
        "but_for": None,
        "processes": [],
    }


def _essence(diagnosis: dict[str, Any], moved: bool) -> dict[str, Any]:
    """What of it is news. While nothing moves, sentences only tell how long that has lasted."""
    if moved:
        return {**diagnosis, "time": 0}
    judgements = [{**one, "text": ""} for one in diagnosis["processes"]]
    return {**diagnosis, "time": 0, "title": "", "sentences": [], "processes": judgements}


Told = dict[str, Any] | None
"""What there is to tell of a timeline, if anything, as ``observe.timeline`` has it."""


class Timeline:
    """What happened, from when it was first asked for. Its picture must be up to date."""

    def __init__(self, folder: str, picture: Picture) -> None:
        self._folder, self._picture = folder, picture
        self._lock = threading.Lock()
        self._recorder: Any = None
        self._seen = -1
        self._read_at = -math.inf
        self._counts: dict[str, int] = {}

    def follow(self, whole: bool, observer: Any = None) -> tuple[Told, Told]:
        """What is new since the last call, if anything is; and all, if ``whole``.

        Raises FileNotFoundError when the world is gone.
        """
        with self._lock:
            moves, new = self._picture.moves, None
            if moves != self._seen and self._is_due():
                found = self._recording().update(self._picture.newest, observer)
                new = found if found["spans"] or found["flights"] else None
                self._seen = moves
            return new, self._recording().whole() if whole else None

    def _is_due(self) -> bool:
        """Whether to read the traces now, and not in a later call."""
        picture, now = self._picture.newest, time.monotonic()
        processes = picture["processes"] if picture else []
        counts = {one["uid"]: one["sent"] + one["received"] for one in processes}
        is_due = now - self._read_at >= TRACE_PAUSE or any(
            count - self._counts.get(uid, 0) > HASTE for uid, count in counts.items()
        )
        if is_due:
            self._read_at, self._counts = now, counts
        return is_due

    def trace(self) -> Any:
        """All of the last run in the format of Chrome's tracing and of Perfetto."""
        with self._lock:
            recorder = self._recording()
            recorder.read(self._picture.newest)
            self._seen = -1  # the next call of `follow` tells what was read here
            return recorder.timeline().to_chrome()

    def _recording(self) -> Any:
        if self._recorder is None:
            from sfm_kernel.observe.timeline import Recorder

            self._recorder = Recorder(self._folder)
        return self._recorder
