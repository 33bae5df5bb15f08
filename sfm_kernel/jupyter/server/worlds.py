"""The worlds of this user on this machine."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from sfm_kernel.directory import root, worlds
from sfm_kernel.directory.folders import check_private, check_world
from sfm_kernel.errors import BadName, WorldAccess
from sfm_kernel.jupyter.server.elsewhere import Door, Doors
from sfm_kernel.jupyter.server.origin import Cluster
from sfm_kernel.jupyter.server.views import Diagnosis, Picture, Timeline, Told


class UnknownWorld(LookupError):
    """There is no such world of this user."""


class World:
    """One of them, and what is known of it.

    Attributes:
        learn: finds out where its processes may be. Before that it seems to have no door, and who
            waits for another machine's processes would be called stuck.
    """

    def __init__(self, name: str, folder: str, doors: Doors, learn: Callable[[], object]) -> None:
        door = self._door = partial(doors.find, name)
        self.name, self.folder, self.learn = name, folder, learn
        self.picture = Picture(folder, door)
        self.diagnosis = Diagnosis(folder, self.picture, door)
        self.timeline = Timeline(folder, self.picture)

    @property
    def door(self) -> Door | None:
        """What leads to its processes on other machines; None where it has none."""
        return self._door()

    def look(self, follow: bool, whole: bool, observer: Any = None) -> tuple[Told, Told]:
        """Bring the picture up to date, and with ``follow`` the timeline.

        Args:
            observer: as for ``snapshot``.
        Returns: as ``Timeline.follow``.
        Raises: FileNotFoundError when the world is gone.
        """
        self.picture.look(observer=observer)
        return self.timeline.follow(whole, observer) if follow else (None, None)


class Worlds:
    """All of them. Its methods may be called by any thread.

    Args:
        doors: lead to their processes on other machines.
    """

    def __init__(self, doors: Doors | None = None) -> None:
        self._known: dict[str, World] = {}
        self._doors = doors or Doors(logging.getLogger(__name__))
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Those in which a process lives and that are closed to others, by name."""
        try:
            return [name for name in worlds() if _is_private(name)]
        except WorldAccess:  # the root is somebody else's: nothing there is ours
            return []

    def learn(self) -> tuple[list[str], dict[str, Cluster]]:
        """Their names, and the clusters by world; from now on their doors are found."""
        names = self.names()
        return names, self._doors.learn(names)

    def find(self, name: str) -> World:
        """The world of this name.

        Raises UnknownWorld where there is none, it is somebody else's, or that is no name.
        """
        try:
            folder = os.path.join(root(), check_world(name))
        except BadName as problem:
            raise UnknownWorld(str(problem)) from None
        if not _is_private(name):
            raise UnknownWorld(f"there is no world {name!r} of yours. It may have ended just now")
        with self._lock:
            if name not in self._known:
                self._known[name] = World(name, folder, self._doors, self.learn)
            return self._known[name]

    def keep_only(self, names: Collection[str]) -> None:
        """Forget what is known of the others: a new world may get the name of one that ended."""
        with self._lock:
            self._known = {name: one for name, one in self._known.items() if name in names}


def _is_private(name: str) -> bool:
    try:
        check_private(root())
        check_private(os.path.join(root(), name))
    except (OSError, WorldAccess):
        return False
    return True
