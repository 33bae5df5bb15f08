"""What was compiled, kept by what it was made of: the same again costs a few looks at files.

The folder is the user's alone (who could write there could have anything run), below
``$XDG_CACHE_HOME`` or ``~/.cache``. An entry is a folder, which appears whole, by a rename. Its
name is a hash of all that is known before compiling; which headers were read is only known
afterwards, and stands in its record.

What only new entries need is imported when one is made: the launcher mostly finds what it wants.
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
"""Bytes that are kept; what was not used for longest goes first."""

_FRESH = 600.0
"""Seconds for which an entry stays that was used: it may be about to be started."""

_RECORD = "record.json"
_UNFINISHED = "new-"
_SYSTEM = ("/usr/", "/lib/", "/opt/")
"""Where headers change when something is installed: their time and size tell."""


class Cache:
    """The user's cache of compiled programs.

    Args:
        folder: where it is; default: the user's.
        largest: bytes that are kept.
    """

    def __init__(self, folder: str | None = None, largest: int = LARGEST) -> None:
        self.folder = folder or _folder()
        self._largest = largest

    def find(self, key: str) -> tuple[str, dict[str, Any]] | None:
        """The folder of an entry, and its record; None if there is none that is still true."""
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
        """Make a folder an entry, which replaces what was there; its new place."""
        record["headers"] = [[path, _stamp(path)] for path in headers]
        with open(os.path.join(folder, _RECORD), "w", encoding="utf-8") as file:
            json.dump(record, file)
        place = os.path.join(self.folder, key)
        for _ in range(100):  # somebody else may be making the same
            try:
                os.rename(folder, place)
                break
            except OSError:
                old = os.path.join(self.folder, f"{_UNFINISHED}{os.urandom(8).hex()}")
                with suppress(OSError):
                    os.rename(place, old)
                    self.drop(old)
        self._make_room(place)
        return place

    def drop(self, folder: str) -> None:
        """Remove a folder that did not become an entry."""
        import shutil

        shutil.rmtree(folder, ignore_errors=True)

    def _make_room(self, but: str) -> None:
        """Remove what was not used for longest, and what was left unfinished."""
        now, total, entries = time.time(), 0, []
        with os.scandir(self.folder) as found:
            for entry in found:
                with suppress(OSError):
                    used = entry.stat(follow_symlinks=False).st_mtime
                    if entry.name == "zig":  # the compiler's own
                        continue
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
    """A name for what is made of these: strings, bytes, numbers, and lists of them."""
    text = json.dumps(parts, default=lambda data: hashlib.sha256(data).hexdigest())
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _stamp(path: str) -> str:
    """What changes when a file does: its contents; of a system's file, size and time."""
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


def _folder() -> str:
    """The user's folder, made if it is not there; one for this process where that cannot be."""
    for place in (_in_home, _in_common):
        folder = place()
        with suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            about = os.lstat(folder)
            closed = stat.S_ISDIR(about.st_mode) and not about.st_mode & 0o022
            if closed and about.st_uid == os.geteuid() and os.access(folder, os.W_OK | os.X_OK):
                return folder
    return _temporary()


def _in_home() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(home), "sfm-kernel", "c")


def _in_common() -> str:
    import tempfile

    return os.path.join(tempfile.gettempdir(), f"sfm-c-{os.geteuid()}")


_own: str | None = None


def _temporary() -> str:
    """A folder for this process alone, removed at its end."""
    global _own
    if _own is None:
        import atexit
        import shutil
        import tempfile

        _own = tempfile.mkdtemp(prefix="sfm-c-")
        atexit.register(shutil.rmtree, _own, ignore_errors=True)
    return _own
