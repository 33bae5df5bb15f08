"""Removes the files of dead processes, and never those of living ones.

A process is dead when no process holds the lock of its segment. A segment appears under its name
already locked, so an unlocked one never belongs to a process that is about to join.
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
"""Seconds after which a file that still has its temporary name belongs to a dead process."""

SITES = ".sites"
"""The suffix of the folder for a world's sites, after the world's name."""

_OURS = re.compile(r"(?P<uid>[0-9a-f]{32})(-(?P<receiver>[0-9a-f]{32}))?\.(?P<kind>\w+)")
_OWNER = re.compile(r"[a-z]+(-alone)?-(?P<pid>[0-9]+)-[0-9a-f]")
"""The beginning of the name of a world that a process makes for others, with that process's id."""

_TABLE_FILES = ("key", "key.new", "members.json.new", "members.json", "relay", "lock")
"""The files of a world's table, in the order in which they are removed. The key is a secret. The
lock is last: if this process is killed before, ``clean`` still recognises the world."""


def worlds() -> list[str]:
    """The worlds of this user on this machine in which a process lives, by name.

    Those whose last process has died are removed, see ``remove_dead``.

    Raises WorldAccess, as all functions of this module, if the root is another user's or open to
    others.
    """
    remove_dead()
    top = root()
    return [world for world in _folders() if _is_inhabited(os.path.join(top, world))]


def remove_dead() -> None:
    """Remove the worlds whose last process has died: their keys and messages are nobody's.

    A world that its owner has made for others, as ``run`` does, stays for as long as the owner
    lives, which looks at how they ended and then removes it.
    """
    top = root()
    for world in _folders():
        path = os.path.join(top, world)
        owner = _OWNER.match(world)
        with contextlib.suppress(OSError):  # another process was faster
            if "lock" in os.listdir(path) and not (owner and _runs(int(owner["pid"]))):
                remove_unused(path)


def _runs(pid: int) -> bool:
    """Whether there is such a process; it may be another one, with the same id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def clean() -> list[str]:
    """Remove the files of dead processes; returns the paths that were removed.

    Worlds in which no process lives are removed completely; from the others, the files of dead
    processes and their entries in the table. Safe while processes join or leave.
    """
    removed = [path for world in _folders() for path in _clean_world(world)]
    for name in _folders():
        if name.endswith(SITES):
            removed += remove_sites(name.removesuffix(SITES))
    return removed + clean_sockets()


def remove_world(world: str) -> bool:
    """Remove a world in which no process lives; return whether it no longer exists.

    If a process lives in the world, or has it open, only the files of dead processes are removed.
    The caller closes its endpoint and directory first.
    """
    if check_world(world) in _folders():
        _clean_world(world)
    return not os.path.lexists(os.path.join(root(), world))


def sites_folder(world: str) -> str:
    """The folder for those sites of a world that share this machine; each has a folder in it."""
    return os.path.join(root(), check_world(world) + SITES)


def remove_sites(world: str) -> list[str]:
    """Remove the sites of a world in which no process lives; returns the paths removed."""
    top = sites_folder(world)
    removed = []
    with contextlib.suppress(OSError, WorldError):
        check_private(top)
        for site in os.listdir(top):
            path = os.path.join(top, site)
            removed += remove_unused(os.path.join(path, world)) or []
            with contextlib.suppress(OSError):  # a process lives there
                os.rmdir(path)
        os.rmdir(top)
    return removed


def sweep(folder: str, keep: Collection[str] = ()) -> list[str]:
    """Remove the files of dead processes, except the segments of the uids in ``keep``.

    Returns the paths. Call it under the folder's lock. A ring is removed with its receiver: a
    living receiver still reads what a dead sender wrote.
    """
    alive: dict[str, bool] = {}

    def lives(uid: str) -> bool:
        if uid not in alive:
            guest = os.path.join(folder, f"{uid}.guest")  # a link to a segment in another folder
            segment = os.path.join(folder, f"{uid}.seg")
            alive[uid] = is_alive(guest if os.path.exists(guest) else segment)
        return alive[uid]

    def is_orphaned(found: re.Match[str], path: str) -> bool:
        if found["kind"] == "tree":  # made for a group; named after its first member
            return not lives(found["uid"])
        if found["kind"] != "new":
            owner = found["receiver"] or found["uid"]
            return not lives(owner) and (found["kind"] == "ring" or owner not in keep)
        if found["receiver"]:
            return not lives(found["uid"])
        return time.time() - os.stat(path).st_mtime > UNFINISHED_SECONDS  # not yet locked

    removed = []
    for file in os.listdir(folder):
        path = os.path.join(folder, file)
        with contextlib.suppress(FileNotFoundError):  # its owner was faster
            if (found := _OURS.fullmatch(file)) and is_orphaned(found, path):
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
        # A process uses it.
        with contextlib.suppress(WorldError), WorldFolder(world, create=False) as folder:
            with folder.locked():
                removed = sweep(path)
                _forget_dead(folder)
        # A process that left meanwhile may have found the folder open, by this one.
        removed = [*(removed or []), *(remove_unused(path) or [])]
    return removed


def remove_unused(path: str, only_if_left: bool = False) -> list[str] | None:
    """Remove a world's folder; None, and nothing is removed, while a process has it open.

    ``only_if_left``: also None unless processes have joined, and all of them have left.
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
        files = os.listdir(path)
        ours = ["key", *filter(_OURS.fullmatch, files), *_TABLE_FILES[1:]]
        for file in ours:
            if file in files:
                os.unlink(os.path.join(path, file))
        os.rmdir(path)
    except BlockingIOError:
        return None
    except OSError:  # another process removed it, or the user put another file there
        return []
    finally:
        os.close(fd)
    return [path]


def _is_left(path: str) -> bool:
    from sfm_kernel.directory.table import Table

    try:
        with open(os.path.join(path, "members.json"), "rb") as file:
            return not Table.loads(file.read()).members
    except (OSError, WorldError):  # no process has joined yet; or the file is not a table
        return False


def _forget_dead(folder: WorldFolder) -> None:
    from sfm_kernel.directory.table import Table  # removing an empty world does without

    content = folder.read("members.json")
    if content is None:  # a directory server keeps this world's table
        return
    table = Table.loads(content)
    for member in table.members:
        if not is_alive(member.segment):
            table.remove(member.uid)
    folder.write("members.json", table.dumps())
