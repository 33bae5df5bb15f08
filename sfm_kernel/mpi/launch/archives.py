"""Unpacks an archive, with a program and its files, into a new folder.

An archive may come from an untrusted source. No file is written outside the folder: links, devices
and names that lead out of it are refused, and so are archives that would fill the disk.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, NamedTuple

from sfm_kernel.errors import SFMError

if TYPE_CHECKING:
    import tarfile
    import zipfile

ENDINGS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
"""Suffixes of archives."""

MOST_BYTES = 2 << 30
MOST_FILES = 20_000


class BadArchive(SFMError):
    """An archive was not unpacked: it is damaged, or has files that must not be unpacked."""


class _Member(NamedTuple):
    """One file of an archive: ``problem`` if it is not a file, ``run`` if it can be started."""

    name: str
    size: int
    problem: str
    folder: bool
    run: bool


def is_archive(path: str) -> bool:
    """Whether a file's name says that it is an archive."""
    return path.endswith(ENDINGS) and os.path.isfile(path)


def holds(path: str, name: str) -> bool:
    """Whether a zip archive has a file of this name at its top."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            return name in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def unpack(path: str, folder: str) -> None:
    """Unpack an archive into an empty folder.

    Raises:
        BadArchive: the archive is refused; the folder may have some of its files.
    """
    import lzma
    import tarfile
    import zipfile
    import zlib

    try:
        if path.endswith(".zip"):
            with zipfile.ZipFile(path) as packed:
                _take(path, _of_zip(packed), folder)
        else:
            with tarfile.open(path) as tape:
                _take(path, _of_tar(tape), folder)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError) as problem:
        raise BadArchive(f"{path} is damaged, or no archive: {problem}") from None
    except RuntimeError as problem:  # zipfile needs a password
        raise BadArchive(f"{path} cannot be unpacked: {problem}") from None
    except NotImplementedError as problem:
        raise BadArchive(f"{path} is packed in a way that Python lacks: {problem}") from None


def _of_zip(archive: zipfile.ZipFile) -> Iterator[tuple[_Member, IO[bytes] | None]]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        problem = "" if kind in (0, stat.S_IFREG, stat.S_IFDIR) else "is a link or a device"
        member = _Member(info.filename, info.file_size, problem, info.is_dir(), bool(mode & 0o100))
        yield member, None if problem or info.is_dir() else archive.open(info)


def _of_tar(archive: tarfile.TarFile) -> Iterator[tuple[_Member, IO[bytes] | None]]:
    for info in archive:
        problem = "" if info.isreg() or info.isdir() else "is a link or a device"
        member = _Member(info.name, info.size, problem, info.isdir(), bool(info.mode & 0o100))
        yield member, archive.extractfile(info) if info.isreg() else None


def _take(path: str, members: Iterator[tuple[_Member, IO[bytes] | None]], folder: str) -> None:
    import shutil

    remaining = MOST_BYTES
    for count, (member, data) in enumerate(members):
        if problem := member.problem or _leads_elsewhere(member.name):
            raise BadArchive(f"{path}: {member.name!r} {problem}; nothing of it was run")
        remaining -= member.size
        if remaining < 0 or count >= MOST_FILES:
            raise BadArchive(
                f"{path} holds more than {MOST_FILES} files or {MOST_BYTES >> 30} GB: unpack it "
                f"yourself, and name the folder"
            )
        target = os.path.join(folder, *_parts(member.name))
        if member.folder:
            os.makedirs(target, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        assert data is not None
        with data, open(target, "wb") as file:
            shutil.copyfileobj(data, file)
        os.chmod(target, 0o700 if member.run else 0o600)


def _parts(name: str) -> list[str]:
    return [word for word in name.split("/") if word not in ("", ".")]


def _leads_elsewhere(name: str) -> str:
    if name.startswith("/") or ".." in _parts(name) or "\\" in name or "\0" in name:
        return "leads out of the archive's folder"
    return ""
