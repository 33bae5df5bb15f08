"""Unpacks an archive, with a program and its files, into a new folder.

An archive may come from an untrusted source. No file is written outside the folder: links, devices
and names that lead out of it are refused. So are archives that would fill the disk or the memory:
what a header claims is compared with a limit before anything is read, made or unpacked for it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from sfm_kernel.errors import SFMError
from sfm_kernel.mpi.launch import tapes

if TYPE_CHECKING:
    import zipfile

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""Suffixes of archives."""

MOST_BYTES = 2 << 30
MOST_FILES = 20_000
"""Files and folders."""

MOST_FOLDERS_DEEP = 100
MOST_NAME_BYTES = 4096

MOST_DIRECTORY_BYTES = 8 << 20
"""Of the directory at a zip archive's end; Python keeps more than ten times as much of it."""

_CHUNK = 1 << 16


class BadArchive(SFMError):
    """An archive was not unpacked: it is damaged, or has files that must not be unpacked."""


class Member(NamedTuple):
    """One file of an archive.

    Attributes:
        problem: why it is refused; "" if it is not.
        run: whether it may be started.
        content: what is in it, in pieces; they have to be taken before the next member.
    """

    name: str
    size: int
    problem: str
    folder: bool
    run: bool
    content: Iterable[bytes]


def is_archive(path: str) -> bool:
    """Whether a file's name says that it is an archive."""
    return path.endswith(ENDINGS) and os.path.isfile(path)


def holds(path: str, name: str) -> bool:
    """Whether a zip archive has a file of this name at its top."""
    if not path.endswith(".zip"):
        return False
    try:
        with _failures(path), _zip(path) as archive:
            return name in archive.namelist()
    except BadArchive:
        return False  # `unpack` says why


def unpack(path: str, folder: str) -> None:
    """Unpack an archive into an empty folder.

    Raises:
        BadArchive: the archive is refused; the folder may have some of its files.
    """
    with _failures(path):
        if path.endswith(".zip"):
            with _zip(path) as archive:
                _take(path, _of_zip(archive), folder)
        else:
            with tapes.opened(path) as tape:
                _take(path, _of_tape(tapes.members(tape)), folder)


@contextmanager
def _failures(path: str) -> Iterator[None]:
    """Raise BadArchive in place of whatever a module of Python says about a damaged archive."""
    import lzma
    import struct
    import tarfile
    import zipfile
    import zlib

    damaged = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, struct.error)
    try:
        yield
    except (*damaged, OSError, EOFError, ValueError, OverflowError) as problem:
        raise BadArchive(f"{path} is damaged, or no archive: {problem}") from None
    except (ImportError, NotImplementedError) as problem:
        raise BadArchive(f"{path} is packed in a way that Python lacks: {problem}") from None
    except (RuntimeError, MemoryError) as problem:  # zipfile needs a password
        raise BadArchive(f"{path} cannot be unpacked: {problem}") from None


def _zip(path: str) -> zipfile.ZipFile:
    import io
    import zipfile

    class Limited(io.BufferedReader):
        """Reads the directory at the end in one piece, as ZipFile asks for it."""

        def read(self, size: int | None = -1, /) -> bytes:
            if size is not None and size > MOST_DIRECTORY_BYTES:
                raise BadArchive(f"{path} claims {size >> 20} MB of names: {_YOURSELF}")
            return super().read(size)

    file = Limited(io.FileIO(path))
    try:
        return zipfile.ZipFile(file)
    except BaseException:
        file.close()
        raise


def _of_zip(archive: zipfile.ZipFile) -> Iterator[Member]:
    import zipfile

    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        problem = "" if kind in (0, stat.S_IFREG, stat.S_IFDIR) else "is a link or a device"
        if info.compress_type == zipfile.ZIP_LZMA:  # it may claim any amount of memory
            problem = "is packed with LZMA: pack it with the usual deflate"
        content = () if problem or info.is_dir() else _content(archive, info)
        yield Member(
            info.filename, info.file_size, problem, info.is_dir(), bool(mode & 0o100), content
        )


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(info) as file:
        while data := file.read(_CHUNK):
            yield data


def _of_tape(entries: Iterator[tapes.Entry]) -> Iterator[Member]:
    for entry in entries:
        problem = "" if entry.file or entry.folder else "is a link or a device"
        run = bool(entry.mode & 0o100)
        yield Member(entry.name, entry.size, problem, entry.folder, run, entry.content)


_YOURSELF = "unpack it yourself, and name the folder"


def _take(path: str, members: Iterator[Member], folder: str) -> None:
    remaining = MOST_BYTES
    made: set[str] = set()
    for member in members:
        if problem := member.problem or _unfit(member.name):
            raise BadArchive(f"{path}: {member.name!r} {problem}; nothing of it was run")
        remaining -= member.size
        parts = _parts(member.name)
        made.update("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        if remaining < 0 or len(made) > MOST_FILES:
            raise BadArchive(
                f"{path} holds more than {MOST_FILES} files or {MOST_BYTES >> 30} GB: {_YOURSELF}"
            )
        try:
            _write(member, os.path.join(folder, *parts))
        except OSError as failure:  # a name that is too long, a file in a folder's place, no room
            raise BadArchive(
                f"{path}: {member.name!r} cannot be unpacked: {failure.strerror}; nothing of "
                f"it was run"
            ) from None


def _write(member: Member, target: str) -> None:
    if member.folder:
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.writelines(member.content)
    os.chmod(target, 0o700 if member.run else 0o600)


def _parts(name: str) -> list[str]:
    return [word for word in name.split("/") if word not in ("", ".")]


def _unfit(name: str) -> str:
    """Why no file may have this name; "" if one may."""
    if name.startswith("/") or ".." in _parts(name) or "\\" in name or "\0" in name:
        return "leads out of the archive's folder"
    if len(name.encode(errors="surrogatepass")) > MOST_NAME_BYTES:
        return f"is a name of more than {MOST_NAME_BYTES} bytes"
    if len(_parts(name)) > MOST_FOLDERS_DEEP:
        return f"is in more than {MOST_FOLDERS_DEEP} folders"
    return ""
