"""Reads a tar archive from its beginning to its end, with limits on what its headers may claim.

Python's TarFile reads a long name or a pax header in one piece, however large the header says it
is, seeks backwards in what has to be decompressed again, and searches pax headers in a time that
grows with the square of their size. Here no header is larger than MOST_HEADER_BYTES, all together
have MOST_BYTES_OF_HEADERS, and each byte is read once. A header block itself is read by tarfile.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

MOST_HEADER_BYTES = 1 << 20
MOST_BYTES_OF_HEADERS = 64 << 20

MOST_MEMORY = 128 << 20
"""Bytes that decompressing may need: ``xz -9`` half of that, and a header may claim 4 GB."""

_XZ = b"\xfd7zXZ\0"
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2"}
"""What a compressed file begins with -> the module that decompresses it."""

_CHUNK = 1 << 16


class Entry(NamedTuple):
    """A file or folder, or (if it is neither) something that a program's files must not be.

    ``content`` has to be taken before the next entry.
    """

    name: str
    size: int
    mode: int
    file: bool
    folder: bool
    content: Iterator[bytes]


def opened(path: str) -> IO[bytes]:
    """The archive's bytes, decompressed."""
    with open(path, "rb") as file:
        start = file.read(8)
    if start.startswith(_XZ):
        return io.BufferedReader(_Xz(path))
    found = [module for magic, module in _PACKED.items() if start.startswith(magic)]
    tape: IO[bytes] = importlib.import_module(found[0] if found else "io").open(path, "rb")
    return tape


class _Xz(io.RawIOBase):
    """A file that xz has compressed, like ``lzma.open``, which has no limit of memory."""

    def __init__(self, path: str) -> None:
        import lzma

        self._file = open(path, "rb")  # noqa: SIM115 - until `close`
        self._lzma = lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data and not self._lzma.eof:
            packed = self._file.read(_CHUNK) if self._lzma.needs_input else b""
            if self._lzma.needs_input and not packed:
                raise EOFError("it ends within its compressed data")
            data = self._lzma.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def members(tape: IO[bytes]) -> Iterator[Entry]:
    """The entries of an archive, in its order.

    Raises:
        tarfile.TarError, EOFError, ValueError: it is damaged, or its headers claim too much.
    """
    import tarfile

    block = tarfile.BLOCKSIZE
    extended = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
    skipped = (tarfile.XGLTYPE, tarfile.GNUTYPE_LONGLINK)
    headers = 0
    pax: dict[str, str] = {}
    first = True
    while (head := tape.read(block)).strip(b"\0") or first:
        info = tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
        first = False
        headers += block
        if info.type in (*extended, *skipped, tarfile.GNUTYPE_LONGNAME):
            headers += max(info.size, 0)
            if not 0 <= info.size <= MOST_HEADER_BYTES or headers > MOST_BYTES_OF_HEADERS:
                raise tarfile.ReadError(f"it claims a header of {info.size} bytes")
            text = b"".join(_content(tape, info.size))
            _skip(tape, -info.size % block)
            if info.type in extended:
                pax |= _records(text)
            elif info.type == tarfile.GNUTYPE_LONGNAME:
                pax["path"] = text.partition(b"\0")[0].decode("utf-8", "surrogateescape")
            continue
        if headers > MOST_BYTES_OF_HEADERS:
            raise tarfile.ReadError(f"it has {headers >> 20} MB of headers")
        if info.type == tarfile.GNUTYPE_SPARSE or any(key.startswith("GNU.sparse") for key in pax):
            raise NotImplementedError("it has sparse files")
        size = int(pax.get("size", info.size)) if info.isreg() else 0
        if size < 0:
            raise tarfile.ReadError("a file of a negative size")
        yield Entry(
            pax.get("path", info.name), size, info.mode, info.isreg(), info.isdir(),
            _content(tape, size),
        )  # fmt: skip
        _skip(tape, -size % block)
        pax = {}


def _records(text: bytes) -> dict[str, str]:
    """The records of a pax header: ``"%d %s=%s\\n"``, the number being the record's length."""
    found = {}
    start = 0
    while start < len(text):
        space = text.find(b" ", start, start + 12)
        end = start + int(text[start:space])
        if space < start or end <= space:
            raise ValueError("a pax header has a record without a length")
        key, _, value = text[space + 1 : end - 1].partition(b"=")
        found[key.decode("utf-8", "replace")] = value.decode("utf-8", "surrogateescape")
        start = end
    return found


def _content(tape: IO[bytes], size: int) -> Iterator[bytes]:
    while size > 0:
        data = tape.read(min(size, _CHUNK))
        if not data:
            raise EOFError("it ends within a file")
        size -= len(data)
        yield data


def _skip(tape: IO[bytes], size: int) -> None:
    for _ in _content(tape, size):
        pass
