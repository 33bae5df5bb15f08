"""A cache of compiled programs, by the contents of their sources: a hit costs reading a few files.

The folder, below ``$XDG_CACHE_HOME`` or ``~/.cache``, is writable by the user only, because anyone
who could write there could run code as the user. An entry is a folder that appears complete, by a
rename. Its name is a hash of everything known before compiling; the headers that were read are
known only afterwards, and are listed in its record.

Modules that only new entries need are imported when one is made: the launcher mostly gets a hit.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

LARGEST = 256 << 20
"""The largest size in bytes; the least recently used entries are removed first."""

_FRESH = 600.0
"""Seconds for which a used entry stays, because its program may be about to start."""

LASTING = "lasting-"
"""The beginning of the names of entries that stay: small, and on the PATH of processes that run."""

_RECORD = "record.json"
_UNFINISHED = "new-"
_SYSTEM = ("/usr/", "/lib/", "/opt/")
"""Folders whose headers change only by installations, which change their time and size."""


class Cache:
    """The user's cache of compiled programs.

    Args:
        folder: its path; default: the user's.
        largest: its largest size in bytes.
    """

    def __init__(self, folder: str | None = None, largest: int = LARGEST) -> None:
        self.folder = folder or private_folder("c") or _temporary()
        self._largest = largest

    def find(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """The folder of an entry, and its record; None if there is no current one."""
        folder = os.path.join(self.folder, key)
        try:
            with open(os.path.join(folder, _RECORD), encoding="utf-8") as file:
                record: dict[str, Any] = json.load(file)
            used = os.stat(folder).st_mtime
        except (OSError, ValueError):
            return None
        if any(_stamp(path) != stamp for path, stamp in record["headers"]):
            return None
        if time.time() - used > _FRESH / 2:
            with suppress(OSError):
                os.utime(folder)
        return folder, record

    def new(self) -> str:
        """A new folder to compile in; ``keep`` or ``drop`` it."""
        import tempfile

        return tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder)

    def keep(self, folder: str, key: str, headers: Iterable[str], **record: Any) -> str:
        """Make a folder an entry, which replaces an older one; returns its new path."""
        record["headers"] = [[path, _stamp(path)] for path in headers]
        with open(os.path.join(folder, _RECORD), "w", encoding="utf-8") as file:
            json.dump(record, file)
        path = os.path.join(self.folder, key)
        for _ in range(100):  # another process may be making the same entry
            try:
                os.rename(folder, path)
                break
            except OSError:
                old = os.path.join(self.folder, f"{_UNFINISHED}{os.urandom(8).hex()}")
                with suppress(OSError):
                    os.rename(path, old)
                    self.drop(old)
        self._make_room(path)
        return path

    def drop(self, folder: str) -> None:
        """Remove a folder that did not become an entry."""
        import shutil

        shutil.rmtree(folder, ignore_errors=True)

    def _make_room(self, but: str) -> None:
        """Remove the least recently used entries, and unfinished ones."""
        now, total, entries = time.time(), 0, []
        with os.scandir(self.folder) as found:
            for entry in found:
                with suppress(OSError):
                    used = entry.stat(follow_symlinks=False).st_mtime
                    if entry.name == "zig" or entry.name.startswith(LASTING):
                        continue  # the compiler's own; those on a PATH
                    if entry.name.startswith(_UNFINISHED) and now - used > 3600:
                        self.drop(entry.path)
                        continue
                    size = _size(entry.path)
                    total += size
                    if entry.path != but and now - used > _FRESH:
                        entries.append((used, size, entry.path))
        for _, size, path in sorted(entries):
            if total <= self._largest:
                break
            self.drop(path)
            total -= size


def key(*parts: object) -> str:
    """The name of an entry made from these: strings, bytes, numbers, and lists of them."""
    text = json.dumps(parts, default=lambda data: hashlib.sha256(data).hexdigest())
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _stamp(path: str) -> str:
    """A value that changes with a file: a hash of its contents; size and time of a system file."""
    try:
        if path.startswith(_SYSTEM):
            about = os.stat(path)
            return f"{about.st_size} {about.st_mtime_ns}"
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "gone"


def _size(folder: str) -> int:
    with os.scandir(folder) as files:
        return sum(file.stat(follow_symlinks=False).st_size for file in files if file.is_file())


def private_folder(kind: str) -> str | None:
    """The user's folder of that name, made if it does not exist, which no other user can write in;
    None if there can be none."""
    for candidate in (_in_home, _in_common):
        folder = candidate(kind)
        with suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            about = os.lstat(folder)
            closed = stat.S_ISDIR(about.st_mode) and not about.st_mode & 0o022
            if closed and about.st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK):
                return folder
    return None


def _in_home(kind: str) -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(home), "sfm-kernel", kind)


def _in_common(kind: str) -> str:
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"sfm-{kind}-{os.geteuid()}")


_process_folder: str | None = None


def _temporary() -> str:
    """A folder for this process only, removed at its end."""
    global _process_folder
    if _process_folder is None:
        import atexit
        import shutil
        import tempfile

        _process_folder = tempfile.mkdtemp(prefix="sfm-c-")
        atexit.register(shutil.rmtree, _process_folder, ignore_errors=True)
    return _process_folder
