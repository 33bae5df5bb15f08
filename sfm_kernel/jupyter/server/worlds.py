"""The worlds of this user on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection

from sfm_kernel.directory import root, worlds
from sfm_kernel.directory.folders import check_private, check_world
from sfm_kernel.errors import BadName, WorldAccess
from sfm_kernel.jupyter.server.views import Diagnosis, Picture, Timeline


class UnknownWorld(LookupError):
    """There is no such world of this user."""


class World:
    """One of them, and what is known of it."""

    def __init__(self, name: str, folder: str) -> None:
        self.name, self.folder = name, folder
        self.picture = Picture(folder)
        self.diagnosis = Diagnosis(folder, self.picture)
        self.timeline = Timeline(folder, self.picture)


class Worlds:
    """All of them. Its methods may be called by any thread."""

    def __init__(self) -> None:
        self._known: dict[str, World] = {}
        self._lock = threading.Lock()

    def names(self) -> list[str]:
        """Those in which a process lives and that are closed to others, by name."""
        try:
            return [name for name in worlds() if _is_private(name)]
        except WorldAccess:  # the root is somebody else's: nothing there is ours
            return []

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
            return self._known.setdefault(name, World(name, folder))

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
