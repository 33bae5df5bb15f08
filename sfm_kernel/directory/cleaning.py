"""Removing what the dead left, without ever touching the living.

A process is dead when nobody holds the lock of its segment. A segment appears under its name
already locked, so that an unlocked one never belongs to a process that is about to join.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Collection

from sfm_kernel.directory.folders import (
    WORLD_NAME,
    WorldFolder,
    check_private,
    check_world,
    is_alive,
)
from sfm_kernel.directory.roots import root
from sfm_kernel.directory.unix import clean_sockets
from sfm_kernel.errors import WorldError

UNFINISHED_SECONDS = 60.0
"""A file that is still under its temporary name after this was abandoned by a dead process."""

SITES = ".sites"
"""At the end of a folder's name: it is of the sites of the world with that name."""

_OURS = re.compile(r"(?P<uid>[0-9a-f]{32})(-(?P<receiver>[0-9a-f]{32}))?\.(?P<kind>\w+)")
_TABLE_FILES = ("members.json.new", "members.json", "key.new", "key", "relay", "lock")


def worlds() -> list[str]:
    """The worlds of this user on this machine in which a process lives, by name.

    Raises WorldAccess, as all here, if the root is not the user's own or open to others.
    """
    top = root()
    return [world for world in _folders() if _is_inhabited(os.path.join(top, world))]


def clean() -> list[str]:
    """Remove what dead processes left; returns the paths of what was removed.

    Worlds in which nobody lives go as a whole; in the others go the files of the dead, and their
    entries in the table. Safe while processes join or leave.
    """
    removed = [path for world in _folders() for path in _clean_world(world)]
    for name in _folders():
        if name.endswith(SITES):
            removed += remove_sites(name.removesuffix(SITES))
    return removed + clean_sockets()


def remove_world(world: str) -> bool:
    """Remove a world in which nobody lives any more; whether it is gone now.

    Where somebody lives, or still has it open, only what the dead left is removed. The caller
    closes its own endpoint and directory first.
    """
    if check_world(world) in _folders():
        _clean_world(world)
    return not os.path.lexists(os.path.join(root(), world))


def sites_folder(world: str) -> str:
    """Where the sites of a world are that share this machine: a folder each, as if of its own."""
    return os.path.join(root(), check_world(world) + SITES)


def remove_sites(world: str) -> list[str]:
    """Remove those of a world's sites in which nobody lives; returns the paths of what is gone."""
    top = sites_folder(world)
    removed = []
    with contextlib.suppress(OSError, WorldError):
        check_private(top)
        for site in os.listdir(top):
            path = os.path.join(top, site)
            removed += remove_unused(os.path.join(path, world)) or []
            with contextlib.suppress(OSError):  # somebody lives there
                os.rmdir(path)
        os.rmdir(top)
    return removed


def sweep(folder: str, keep: Collection[str] = ()) -> list[str]:
    """Remove the files of dead processes but for the segments of the uids in ``keep``; returns
    their paths. Under the folder's lock.

    A ring goes with its receiver: what a dead sender wrote is still received by a living one.
    """
    alive: dict[str, bool] = {}

    def lives(uid: str) -> bool:
        if uid not in alive:
            guest = os.path.join(folder, f"{uid}.guest")  # a second name of a segment elsewhere
            own = os.path.join(folder, f"{uid}.seg")
            alive[uid] = is_alive(guest if os.path.exists(guest) else own)
        return alive[uid]

    def is_left(found: re.Match[str], path: str) -> bool:
        if found["kind"] == "tree":  # made for a group; named after its first member
            return not lives(found["uid"])
        if found["kind"] != "new":
            owner = found["receiver"] or found["uid"]
            return not lives(owner) and (found["kind"] == "ring" or owner not in keep)
        if found["receiver"]:
            return not lives(found["uid"])
        return time.time() - os.stat(path).st_mtime > UNFINISHED_SECONDS  # locked only later

    removed = []
    for file in os.listdir(folder):
        path = os.path.join(folder, file)
        with contextlib.suppress(FileNotFoundError):  # its owner was faster
            if (found := _OURS.fullmatch(file)) and is_left(found, path):
                os.unlink(path)
                removed.append(path)
    return removed


def _folders() -> list[str]:
    top = root()
    if not os.path.lexists(top):
        return []
    check_private(top)
    return sorted(filter(WORLD_NAME.fullmatch, os.listdir(top)))


def _is_inhabited(path: str) -> bool:
    try:
        files = os.listdir(path)
    except OSError:
        return False
    return any(file.endswith(".seg") and is_alive(os.path.join(path, file)) for file in files)


def _clean_world(world: str) -> list[str]:
    path = os.path.join(root(), world)
    try:
        files = os.listdir(path)
    except OSError:
        return []
    if files and "lock" not in files:
        return []  # no world: SFM_DIR may hold other things
    removed = remove_unused(path)
    if removed is None:
        # Somebody uses it.
        with contextlib.suppress(WorldError), WorldFolder(world, create=False) as folder:
            with folder.locked():
                removed = sweep(path)
                _forget_dead(folder)
        # Whoever has left meanwhile may have found it in use, by us.
        removed = [*(removed or []), *(remove_unused(path) or [])]
    return removed


def remove_unused(path: str, only_if_left: bool = False) -> list[str] | None:
    """Remove a world's folder; None, and nothing removed, while somebody has it open.

    ``only_if_left``: and None unless processes have joined, and all have left.
    """
    try:
        check_private(path)
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (OSError, WorldError):
        return []
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_inhabited(path) or (only_if_left and not _is_left(path)):
            return None
        # The mark of a world goes last: what is killed here leaves one that `clean` knows.
        for file in sorted(os.listdir(path), key=lambda file: file == "lock"):
            if file in _TABLE_FILES or _OURS.fullmatch(file):
                os.unlink(os.path.join(path, file))
        os.rmdir(path)
    except BlockingIOError:
        return None
    except OSError:  # somebody else removed it, or put a file of his own there
        return []
    finally:
        os.close(fd)
    return [path]


def _is_left(path: str) -> bool:
    from sfm_kernel.directory.table import Table

    try:
        with open(os.path.join(path, "members.json"), "rb") as file:
            return not Table.loads(file.read()).members
    except (OSError, WorldError):  # nobody has joined yet; or what stands there is none of ours
        return False


def _forget_dead(folder: WorldFolder) -> None:
    from sfm_kernel.directory.table import Table  # what nobody has left needs it not

    content = folder.read("members.json")
    if content is None:  # a directory server keeps this world's table
        return
    table = Table.loads(content)
    for member in table.members:
        if not is_alive(member.segment):
            table.remove(member.uid)
    folder.write("members.json", table.dumps())
