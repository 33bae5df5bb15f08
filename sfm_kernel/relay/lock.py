"""The lock that lets one relay of a world run on a machine: on a file in the world's folder.

The kernel drops the lock with the process. A relay that ends removes the file. A file without a
lock is that of a relay that was killed: another one is started, and takes it over. Who starts a
relay takes the lock, and hands it on by descriptor, so that of many only one does.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from sfm_kernel.directory import is_alive

FILE = "relay"
"""The file's name; it is removed with the world's folder."""

_ATTEMPTS = 20
_PAUSE = 0.005


class Lock:
    """The relay's lock. Made by ``acquire``, or from a descriptor that another process handed on.

    Attributes:
        fd: the locked file; the lock is held until all copies of it are closed.
    """

    def __init__(self, folder: str, fd: int) -> None:
        self._path, self.fd = os.path.join(folder, FILE), fd

    @classmethod
    def acquire(cls, folder: str) -> Lock | None:
        """Take the lock; None if a living relay has it.

        Raises FileNotFoundError if there is no such folder.
        """
        path = os.path.join(folder, FILE)
        for _ in range(_ATTEMPTS):  # ``is_held`` holds it for a moment
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            lock = cls(folder, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if lock.is_valid():
                    return lock
            except BlockingIOError:
                time.sleep(_PAUSE)
            os.close(fd)
        return None

    def is_valid(self) -> bool:
        """Whether the file is still in the folder: the user may have removed the world."""
        with contextlib.suppress(OSError):
            return os.path.samestat(os.fstat(self.fd), os.lstat(self._path))
        return False

    def release(self) -> None:
        """Remove the file, and release the lock."""
        if self.is_valid():
            os.unlink(self._path)
        self.hand_on()

    def hand_on(self) -> None:
        """Close the descriptor; another process has a copy, and with it the lock."""
        os.close(self.fd)


def is_held(folder: str) -> bool:
    """Whether a living relay has the lock."""
    return is_alive(os.path.join(folder, FILE))


def is_orphaned(folder: str) -> bool:
    """Whether a relay was killed, and no other one has its lock."""
    return os.path.exists(os.path.join(folder, FILE)) and not is_held(folder)
