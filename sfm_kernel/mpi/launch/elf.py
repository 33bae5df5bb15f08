"""Reads the file of a compiled program: its machine, and the libraries that it needs.

The file is read as the ELF specification describes; no code is run. The file may have any contents:
a damaged file, or one that is not an ELF file, raises ValueError.
"""

from __future__ import annotations

import itertools
import os
import struct
from typing import BinaryIO, NamedTuple

_LITTLE, _BIG = 1, 2
_PROGRAM, SHARED = 2, 3
LOADED, DYNAMIC, _INTERPRETED, STACK = 1, 2, 3, 0x6474E551
NEEDED, HASH, STRINGS, SYMBOLS, SIZE_OF_STRINGS, SIZE_OF_SYMBOL, NAMED = 1, 4, 5, 6, 10, 11, 14
_OLD_PATH, _PATH = 15, 29
_MOST = 1 << 24
"""Largest size in bytes of a table; a damaged file may claim any size."""

_MACHINES = {3: "i386", 20: "ppc", 21: "ppc64le", 22: "s390x", 40: "arm", 62: "x86_64",
             183: "aarch64", 243: "riscv64", 258: "loongarch64"}  # fmt: skip


class Binary(NamedTuple):
    """A program or a library.

    Attributes:
        machine: the machine's name as in ``os.uname().machine``, or a number.
        bits: 32 or 64.
        program: whether it can be started.
        needed: the names of the libraries that it needs.
        old_path: whether it has a search path that precedes LD_LIBRARY_PATH.
        name: the name that a library gives itself.
    """

    machine: str
    bits: int
    program: bool
    needed: tuple[str, ...] = ()
    old_path: bool = False
    name: str = ""


def machine(name: str) -> int:
    """The number of a machine that ``os.uname()`` names.

    Raises:
        OSError: it is unknown.
    """
    for number, known in _MACHINES.items():
        if known == name:
            return number
    raise OSError(f"no libraries are known for {name}")


def is_elf(path: str) -> bool:
    """Whether a file begins like an ELF file."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def read(path: str) -> Binary:
    """Read a program or library.

    Raises:
        ValueError: the file is damaged, or not a compiled program or library.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        try:
            return _Reader(file).binary()
        except (struct.error, IndexError, OverflowError):
            raise ValueError("it is damaged: a segment of it is missing") from None


class _Reader:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._length = os.fstat(file.fileno()).st_size
        start = self._bytes(0, 16)
        if start[:4] != b"\x7fELF" or start[4] not in (1, 2) or start[5] not in (_LITTLE, _BIG):
            raise ValueError("it is no compiled program")
        self._wide = start[4] == 2
        self._order = "<" if start[5] == _LITTLE else ">"

    def binary(self) -> Binary:
        kind, machine = self._words("HH", 16)
        if kind not in (_PROGRAM, SHARED):
            raise ValueError("it is an object file, which has to be linked first")
        segments = self._segments()
        dynamic = self._dynamic(segments)
        interpreted = any(segment[0] == _INTERPRETED for segment in segments)
        about = Binary(
            _MACHINES.get(machine, str(machine)),
            64 if self._wide else 32,
            interpreted or kind == _PROGRAM,
        )
        if not dynamic:
            return about
        strings = self._strings(segments, dynamic)
        needed = tuple(_text(strings, value) for tag, value in dynamic if tag == NEEDED)
        tags = dict(dynamic)
        name = _text(strings, tags[NAMED]) if NAMED in tags else ""
        old = _OLD_PATH in tags and _PATH not in tags
        return about._replace(needed=needed, old_path=old, name=name)

    def _segments(self) -> list[tuple[int, int, int, int]]:
        """Kind, offset in the file, address and size of each segment."""
        (start,) = self._words("Q", 32) if self._wide else self._words("I", 28)
        size, count = self._words("HH", 54 if self._wide else 42)
        form = "I4xQQ8xQ" if self._wide else "III4xI"
        rows = (self._words(form, start + number * size) for number in range(count))
        return [(kind, offset, address, length) for kind, offset, address, length in rows]

    def _dynamic(self, segments: list[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
        found = [segment for segment in segments if segment[0] == DYNAMIC]
        if not found:
            return []
        _, offset, _, length = found[0]
        form = "qQ" if self._wide else "iI"
        data = self._bytes(offset, length)
        size = struct.calcsize(self._order + form)
        pairs = struct.iter_unpack(self._order + form, data[: len(data) // size * size])
        return list(itertools.takewhile(lambda pair: pair[0] != 0, pairs))

    def _strings(
        self, segments: list[tuple[int, int, int, int]], dynamic: list[tuple[int, int]]
    ) -> bytes:
        tags = dict(dynamic)
        address, size = tags.get(STRINGS, 0), tags.get(SIZE_OF_STRINGS, 0)
        for kind, offset, begins, length in segments:
            if kind == LOADED and begins <= address < begins + length:
                return self._bytes(offset + address - begins, size)
        raise ValueError("it is damaged: its names are missing")

    def _words(self, form: str, offset: int) -> tuple[int, ...]:
        size = struct.calcsize(self._order + form)
        return struct.unpack(self._order + form, self._bytes(offset, size))

    def _bytes(self, offset: int, size: int) -> bytes:
        if size > _MOST or offset > self._length:
            raise ValueError("it is damaged: a table in it has an impossible size")
        self._file.seek(offset)
        return self._file.read(size)


def _text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode(errors="replace")
