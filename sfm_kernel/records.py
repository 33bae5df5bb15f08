"""Records in files: texts cut by lines; and pairs of key and value, sorted, on disk if need be.

An entry is a key and some of its values; a run is entries sorted by key, as pickled lists (chunks).
Runs are kept, spilled to disk when they are more than a limit, and merged: more can be sorted than
fits into memory.
"""

from __future__ import annotations

import heapq
import io
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from numbers import Number
from operator import itemgetter
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from sfm_kernel.errors import SpillError

Split = tuple[Any, int, int]
"""A file, and between which bytes the lines begin; or records, and their numbers."""

Entry = tuple[Any, Iterable[Any]]
FIRST = itemgetter(0)

CHUNK = 4 << 10
"""Bytes of a chunk. While runs are merged, one chunk of each is in memory as objects."""

FILES = 32
"""Files that are merged at once; before there are more, they become one."""

_END = pickle.dumps([])


class Line(str):
    """A line of a text file, without its end; ``file`` and ``offset`` (bytes) say where it is."""

    file: Path
    offset: int

    def __reduce__(self) -> Any:  # it travels as a mere text
        return str, (str(self),)


def cut(inputs: list[Any], size: int | None, workers: int) -> Iterator[Split]:
    """The splits of text files (``Path``) and other records, each of ``size`` if it is given."""
    records = [one for one in inputs if not isinstance(one, Path)]
    step = size or max(1, min(1000, len(records) // (4 * workers)))
    for at in range(0, len(records), step):
        yield records[at : at + step], at, at + step
    for file in (one.absolute() for one in inputs if isinstance(one, Path)):
        step = size or min(16 << 20, max(64 << 10, file.stat().st_size // (4 * workers)))
        yield from ((file, at, at + step) for at in range(0, file.stat().st_size, step))


def lines(path: Path, start: int, end: int) -> Iterator[tuple[int, Line]]:
    """The lines that begin in bytes [start, end), and where. Not UTF-8: surrogates."""
    with path.open("rb") as file:
        if start:  # the line that the byte before belongs to is the other split's
            file.seek(start - 1)
            start += len(file.readline()) - 1
        while start < end and (raw := file.readline()):
            line = Line(
                raw.removesuffix(b"\n").removesuffix(b"\r").decode(errors="surrogateescape")
            )
            line.file, line.offset = path, start
            yield start, line
            start += len(raw)


def line_number(path: Path, offset: int) -> int:
    """Which line begins at this byte; the first is 1."""
    number = 1
    with path.open("rb") as file:
        while part := file.read(min(1 << 20, offset - file.tell())):
            number += part.count(b"\n")
    return number


def partitioned(entries: Iterable[Entry], count: int) -> dict[int, list[Entry]]:
    """The entries of each partition, sorted by key."""
    parts: dict[int, list[Entry]] = {}
    for entry in sorted(entries, key=FIRST):
        parts.setdefault(stable_hash(entry[0]) % count, []).append(entry)
    return parts


def stable_hash(key: Any) -> int:
    """The same in every process, as Python's own is not for texts; equal for equal keys."""
    if isinstance(key, (str, bytes)):
        return crc32(key if isinstance(key, bytes) else key.encode(errors="surrogatepass"))
    if isinstance(key, tuple):
        return crc32(repr([stable_hash(one) for one in key]).encode())
    if isinstance(key, Number) and key == key:
        return hash(key)
    raise TypeError(f"{key!r:.80} is no key: use texts, bytes, numbers (not nan), tuples of these")


def chunked(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Sorted entries as chunks of a run; the values of a key may be in several of them."""
    chunk, count, room = list[Entry](), 0, 16
    for key, values in entries:
        values = iter(values)
        while part := list(islice(values, room - count)):
            chunk.append((key, part))
            count += len(part)
            if count == room:
                yield (data := pickle.dumps(chunk, 5))
                chunk, count, room = [], 0, min(max(1, room * CHUNK // len(data)), 4096)
    if chunk:
        yield pickle.dumps(chunk, 5)


def _read(run: IO[bytes]) -> Iterator[Entry]:
    run.seek(0)
    while chunk := pickle.load(run):
        yield from chunk


class Runs:
    """Runs that are merged in the end, at most about ``memory`` bytes of them in memory.

    Its files have no names: nothing is left of them, however this process ends.

    Args:
        folder: where files are made; "" for that of ``tempfile``.
        combined: what is done with sorted entries before they are written.
    Attributes:
        spilled: bytes that were written.
    """

    def __init__(
        self, memory: int, folder: str, combined: Callable[[Iterable[Entry]], Iterable[Entry]]
    ) -> None:
        self._memory, self._folder = memory, folder or tempfile.gettempdir()
        self._combined = combined
        self._held, self.spilled = 0, 0
        self._kept: list[IO[bytes]] = []
        self._files: list[IO[bytes]] = []

    def add(self, chunks: Iterable[bytes]) -> None:
        """Keep a run.

        Raises:
            SpillError: there is no memory for it, and no room on the disk.
        """
        run = b"".join([*chunks, _END])
        self._kept.append(io.BytesIO(run))
        self._held += len(run)
        if self._held > self._memory:
            try:
                self._spill()
            except OSError as error:
                raise SpillError(self._folder, self._held + self.spilled, str(error)) from None

    def entries(self) -> Iterator[Entry]:
        """All entries, sorted by key."""
        return heapq.merge(*map(_read, self._kept + self._files), key=FIRST)

    def _spill(self) -> None:
        """Write what is in memory to a file; what is in files, too, where these are many."""
        many = len(self._files) == FILES
        merged = self._kept + (self._files if many else [])
        file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - it stays open
        try:
            entries = heapq.merge(*map(_read, merged), key=FIRST)
            for chunk in chunked(self._combined(entries)):
                file.write(chunk)
            file.write(_END)
            file.flush()
        except BaseException:
            file.detach().close()  # closing the file itself would write again
            raise
        self._files = [file] if many else [*self._files, file]
        self._kept, self._held = [], 0
        self.spilled += file.tell()
