"""The folders of worlds on this machine, with their segments, rings and tables.

``root()/WORLD/`` is private to the user. A process that uses it holds a shared lock on the folder
itself, so that it is never removed while it is in use; changes of its table happen under an
exclusive lock on the file ``lock``. Both are flocks: the kernel drops them with the process, so a
process killed at any instruction leaves nothing locked. (flock, unlike a POSIX record lock, is not
lost when another module of the same process closes the same file.)
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator

from sfm_kernel.directory.roots import root, unusable
from sfm_kernel.errors import BadName, EndpointClosed, SegmentFull, WorldAccess, WorldGone
from sfm_kernel.transport.closing import Closing

WORLD_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")

LOCK_SECONDS = 10.0
"""Seconds to wait for a lock, which others hold for about a millisecond."""


def check_world(world: str) -> str:
    """The name itself; raises BadName if it is not a world's name."""
    if not isinstance(world, str) or not WORLD_NAME.fullmatch(world):
        raise BadName(
            f"world name {world!r}: use 1 to 64 letters, digits, '.', '_' or '-', and not '.' first"
        )
    return world


def is_alive(segment: str) -> bool:
    """Whether the process that made the segment runs: it holds the file's lock. About 5 µs.

    A segment that does not exist belongs to a process that left. If the segment cannot be opened
    (for want of descriptors), its owner counts as alive.
    """
    try:
        fd = os.open(segment, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    try:
        # Shared, so that two callers at once do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


class WorldFolder(Closing):
    """One world's folder on this machine, held open: no process removes it meanwhile.

    Raises:
        WorldGone: it does not exist and ``create`` is false.
        WorldAccess: it (or the root) belongs to another user, or others may enter it.
    """

    def __init__(self, world: str, *, create: bool) -> None:
        self.world = check_world(world)
        top = make_root() if create else root()
        self.path = os.path.join(top, world)
        self._lock = os.path.join(self.path, "lock")
        if not create and not os.path.lexists(self.path):
            raise self.missing()
        check_private(top)
        self._fd = self._open(create)

    def _open(self, create: bool) -> int:
        while True:
            if create:
                make_folder(self.path)
            try:
                check_private(self.path)
                fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                if create:
                    continue  # another process removed it in between
                raise self.missing() from None
            try:
                _flock(fd, fcntl.LOCK_SH, self.path)
                if _same(fd, self.path):
                    if create:  # `clean` recognises a world by this file
                        os.close(_open_private(self._lock, os.O_WRONLY | os.O_CREAT))
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # the locked folder had just been removed: try again

    def missing(self) -> WorldGone:
        """The error for a world that does not exist."""
        return WorldGone(
            f"world {self.world!r} does not exist on this machine (no {self.path}). "
            f"Start or join it first; with a directory server, give its url and key"
        )

    def exists(self) -> bool:
        """Whether the folder is still the one that was opened."""
        return _same(self._fd, self.path)

    def _check(self) -> None:
        if not self.exists():
            # Another thread may have closed it just now.
            raise EndpointClosed("this directory was closed") if self._fd < 0 else self.missing()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """The exclusive right to change the world's table.

        Raises:
            EndpointClosed: the directory was closed.
            WorldGone: the folder was removed, or a stopped process holds the lock.
        """
        self._check()
        # A file object, not a bare descriptor: if an exception interrupts this function, the loss
        # of the last reference closes the file, and that unlocks it.
        with open(self._lock, "ab", buffering=0, opener=_open_private) as file:
            _flock(file.fileno(), fcntl.LOCK_EX, self._lock)
            try:
                yield
            finally:
                # Closing is not enough: a child forked meanwhile has a copy of the descriptor.
                fcntl.flock(file.fileno(), fcntl.LOCK_UN)

    def read(self, file: str) -> bytes | None:
        """The content of a file of the folder; None if there is none.

        Raises:
            EndpointClosed: the directory was closed.
            WorldGone: the folder was removed.
            WorldAccess: the file belongs to another user, or others may read it.
        """
        try:
            with open(os.path.join(self.path, file), "rb", opener=_open_private) as stream:
                _check_mode(os.fstat(stream.fileno()), stream.name)
                content = stream.read()
        except FileNotFoundError:
            content = None
        self._check()
        return content

    def stamp(self, file: str) -> tuple[int, int] | None:
        """A value that changes when the file is replaced; None if there is none."""
        try:
            status = os.stat(os.path.join(self.path, file), follow_symlinks=False)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    def write(self, file: str, content: bytes) -> None:
        """Replace a file atomically; only under ``locked``.

        Raises SegmentFull if the file system has no room; the file is unchanged then.
        """
        path = os.path.join(self.path, file)
        fresh = f"{path}.new"  # one writer at a time; a dead one's leftover is overwritten
        try:
            with open(fresh, "wb", opener=_open_private) as stream:
                stream.write(content)
            os.rename(fresh, path)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            room = os.statvfs(self.path)
            free, limit = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
            raise SegmentFull(len(content), free, limit, self.path) from error

    def fileno(self) -> int:
        """The descriptor of the folder, which keeps it from being removed."""
        return self._fd

    def close(self) -> bool:
        """Close the folder; return whether it was open. Idempotent."""
        if self._fd < 0:
            return False
        fd, self._fd = self._fd, -1
        os.close(fd)
        return True


def make_root() -> str:
    """Make the folder of this user's worlds, and return it."""
    top = root()
    try:
        make_folder(top)
        top = root()  # a different one if another user has made that one first
        make_folder(top)
    except OSError as problem:
        raise unusable(top, problem) from None
    return top


def make_folder(path: str) -> None:
    """Make the folder, closed to others, unless it exists."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


def check_private(path: str) -> None:
    """Raise WorldAccess unless the folder belongs to the user and is closed to others."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise WorldAccess(f"{path} must be a folder, not a link or a file. Remove it")
    _check_mode(status, path)


def _check_mode(status: os.stat_result, path: str) -> None:
    if status.st_uid != os.geteuid():
        raise WorldAccess(
            f"{path} belongs to user {status.st_uid}, not to you ({os.geteuid()}). "
            f"Set SFM_DIR to a folder of your own"
        )
    if status.st_mode & 0o077:
        raise WorldAccess(
            f"{path} is open to other users (mode {stat.S_IMODE(status.st_mode):o}). "
            f"Messages are private: run chmod go= {path}, or set SFM_DIR to another folder"
        )


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _same(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False


def _flock(fd: int, operation: int, path: str) -> None:
    """Take a lock; interruptible, and bounded: the holder may have been stopped (SIGSTOP)."""
    deadline = time.monotonic() + LOCK_SECONDS
    pause = 0.0005
    while True:
        try:
            fcntl.flock(fd, operation | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise WorldGone(
                    f"{path} has been locked for {LOCK_SECONDS:.0f} s by a process that does not "
                    f"go on (find it with: fuser {path}). Continue or kill it"
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
