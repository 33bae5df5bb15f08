"""Records of MapReduce: text files split by lines, and pairs of key and value, sorted.

An entry is a key and some of its values. A run is a sequence of entries sorted by key, stored as
pickled lists (chunks). Runs stay in memory up to a limit, are then spilled to disk, and are merged
at the end: more can be sorted than fits into memory.
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
"""A file, and the range of bytes in which its lines begin; or records, and their numbers."""

Entry = tuple[Any, Iterable[Any]]
FIRST = itemgetter(0)

CHUNK = 4 << 10
"""Bytes of a chunk, roughly. During a merge one chunk of each run is in memory as objects."""

FILES = 32
"""Number of files that are merged at once. A further spill merges them into one file."""

_END = pickle.dumps([])


class Line(str):
    """A line of a text file, without its end: a ``str`` that knows its file and position.

    ``file`` is the path of the file, ``offset`` the number of bytes before the line.
    """

    file: Path
    offset: int

    def __reduce__(self) -> Any:  # it is sent as plain text
        return str, (str(self),)


def cut(inputs: list[Any], size: int | None, workers: int) -> Iterator[Split]:
    """Split text files (``Path``) and other records: ``size`` bytes or records for each split."""
    records = [record for record in inputs if not isinstance(record, Path)]
    step = size or max(1, min(1000, len(records) // (4 * workers)))
    for start in range(0, len(records), step):
        yield records[start : start + step], start, start + step
    for file in (path.absolute() for path in inputs if isinstance(path, Path)):
        step = size or min(16 << 20, max(64 << 10, file.stat().st_size // (4 * workers)))
        yield from ((file, start, start + step) for start in range(0, file.stat().st_size, step))


def lines(path: Path, start: int, end: int) -> Iterator[tuple[int, Line]]:
    """The lines that begin in bytes [start, end), with their offsets. Bytes that are not UTF-8
    become surrogates."""
    with path.open("rb") as file:
        if start:  # the line of the byte before belongs to the previous split
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
    """The number of the line that begins at this byte; the first is 1."""
    number = 1
    with path.open("rb") as file:
        while block := file.read(min(1 << 20, offset - file.tell())):
            number += block.count(b"\n")
    return number


def partitioned(entries: Iterable[Entry], count: int) -> dict[int, list[Entry]]:
    """The entries of each partition, sorted by key."""
    partitions: dict[int, list[Entry]] = {}
    for entry in sorted(entries, key=FIRST):
        partitions.setdefault(stable_hash(entry[0]) % count, []).append(entry)
    return partitions


def stable_hash(key: Any) -> int:
    """A hash that is the same in every process (Python's hash of a text is not), and equal for
    equal keys."""
    if isinstance(key, (str, bytes)):
        return crc32(key if isinstance(key, bytes) else key.encode(errors="surrogatepass"))
    if isinstance(key, tuple):
        return crc32(repr([stable_hash(item) for item in key]).encode())
    if isinstance(key, Number) and key == key:
        return hash(key)
    raise TypeError(f"{key!r:.80} is no key: use texts, bytes, numbers (not nan), tuples of these")


def chunked(entries: Iterable[Entry]) -> Iterator[bytes]:
    """Sorted entries as chunks of a run; the values of a key may be in several of them."""
    chunk, count, room = list[Entry](), 0, 16
    for key, values in entries:
        values = iter(values)
        while some := list(islice(values, room - count)):
            chunk.append((key, some))
            count += len(some)
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
    """Runs that are merged in the end.

    Its files have no names, so that none remains, however this process ends.

    Args:
        memory: approximate bytes of runs in memory; further runs are spilled.
        folder: the folder of the files; "" for the folder of ``tempfile``.
        combined: applied to sorted entries before they are written.
    Attributes:
        spilled: bytes that were written to files.
    """

    def __init__(
        self, memory: int, folder: str, combined: Callable[[Iterable[Entry]], Iterable[Entry]]
    ) -> None:
        self._memory, self._folder = memory, folder or tempfile.gettempdir()
        self._combined = combined
        self._bytes, self.spilled = 0, 0
        self._in_memory: list[IO[bytes]] = []
        self._files: list[IO[bytes]] = []

    def add(self, chunks: Iterable[bytes]) -> None:
        """Add a run.

        Raises:
            SpillError: the memory limit is reached, and the disk is full.
        """
        run = b"".join([*chunks, _END])
        self._in_memory.append(io.BytesIO(run))
        self._bytes += len(run)
        if self._bytes > self._memory:
            try:
                self._spill()
            except OSError as error:
                raise SpillError(self._folder, self._bytes + self.spilled, str(error)) from None

    def entries(self) -> Iterator[Entry]:
        """All entries, sorted by key."""
        return heapq.merge(*map(_read, self._in_memory + self._files), key=FIRST)

    def _spill(self) -> None:
        """Write the runs in memory to a file, with the runs in files if these are many."""
        many = len(self._files) == FILES
        merged = self._in_memory + (self._files if many else [])
        file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - the file stays open
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
        self._in_memory, self._bytes = [], 0
        self.spilled += file.tell()
