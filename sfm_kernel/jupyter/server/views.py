"""What is known of one world: its picture, why it does not go on, what happened.

Each is read again only when something may have changed, and counts its versions. All of it blocks,
and is called in threads. ``observe`` is imported when it is first needed: every JupyterLab of the
environment loads this extension, also those that show no world.
"""

from __future__ import annotations

import threading
import time
from typing import Any

HEARTBEAT = 1.0
"""Seconds after which a picture is taken again although nothing seems to have moved."""

CALM = 3.0
"""Seconds after the last movement during which a diagnosis may still change: proofs take time."""

PAUSE = 0.5
"""Seconds between two diagnoses at least; they look at everything."""

SECOND_THOUGHT = 5.0
"""Seconds after which a diagnosis is made again although nothing has moved."""


class Picture:
    """The newest snapshot of a world.

    To take one wakes every process of the world, and costs many times as much as a look at their
    counters. Those may not tell of everything, what other machines say for one: hence
    ``HEARTBEAT``.

    Attributes:
        newest: as ``observe.snapshot``; None before the first look.
        version: how often it has changed; its counters tell of everything that happens.
    """

    def __init__(self, folder: str) -> None:
        self.newest: dict[str, Any] | None = None
        self.version = 0
        self._folder = folder
        self._lock = threading.Lock()
        self._pulse: int | None = None
        self._changes = True  # it differed the last time
        self._due = 0.0

    def look(self) -> None:
        """Bring the picture up to date. Waits a moment for each process that is stopped.

        Raises FileNotFoundError when the world is gone.
        """
        from sfm_kernel.observe.snapshot import pulse, snapshot

        with self._lock:
            now = time.monotonic()
            # Not while something happens all the time. And after a change always once more: a
            # message may be between two processes for a moment.
            seen = None if self._changes else pulse(self._folder)
            if seen is not None and seen == self._pulse and now < self._due:
                return
            fresh = snapshot(self._folder)
            self._changes = self.newest is None or fresh["processes"] != self.newest["processes"]
            self._pulse, self._due = seen, now + HEARTBEAT
            if self._changes:
                self.newest = fresh
                self.version += 1


class Diagnosis:
    """Why a world does not go on.

    Attributes:
        newest: as ``observe.explain``; None before the first look.
        version: how often it has changed.
    """

    def __init__(self, folder: str, picture: Picture) -> None:
        self.newest: dict[str, Any] | None = None
        self.version = 0
        self._folder, self._picture = folder, picture
        self._seen = -1  # the picture's version, the last time
        self._moved_at = self._made_at = 0.0

    def look(self) -> None:
        """Bring it up to date. For one thread. Raises FileNotFoundError when the world is gone."""
        from sfm_kernel.observe.explain import explain

        self._picture.look()
        now = time.monotonic()
        moved = self._picture.version != self._seen
        if moved:
            self._moved_at = now
        calm = now > self._moved_at + CALM
        if self.newest is not None and now < self._made_at + (SECOND_THOUGHT if calm else PAUSE):
            return
        self._seen = self._picture.version
        fresh = explain(self._folder)
        self._made_at = time.monotonic()
        if self.newest is None or _essence(fresh, moved) != _essence(self.newest, moved):
            self.newest = fresh
            self.version += 1


def _essence(diagnosis: dict[str, Any], moved: bool) -> dict[str, Any]:
    """What of it is news. While nothing moves, sentences only tell how long that has lasted."""
    if moved:
        return {**diagnosis, "time": 0}
    judgements = [{**one, "text": ""} for one in diagnosis["processes"]]
    return {**diagnosis, "time": 0, "title": "", "sentences": [], "processes": judgements}


class Timeline:
    """What happened, from when it was first asked for. Its picture must be up to date."""

    def __init__(self, folder: str, picture: Picture) -> None:
        self._folder, self._picture = folder, picture
        self._lock = threading.Lock()
        self._recorder: Any = None
        self._seen = -1

    def follow(self, whole: bool) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """What is new since the last call, if anything is; and all, if ``whole``.

        Raises FileNotFoundError when the world is gone.
        """
        with self._lock:
            version, new = self._picture.version, None
            if version != self._seen:
                found = self._recording().update(self._picture.newest)
                new = found if found["spans"] or found["flights"] else None
                self._seen = version
            return new, self._recording().whole() if whole else None

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
