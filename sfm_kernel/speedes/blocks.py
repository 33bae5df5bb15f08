"""Blocks of shared memory for large multicasts: written once, read by many.

A sender has one file. It writes a message to several nodes of its machine into a block of the file,
behind one header for each receiver (Figure 3 of the paper), and sends each receiver the location of
its header. The receiver copies the message and marks its header as read; a block is free when all
its headers are read. Only the sender changes anything else.

The file has a separate name for each receiver: a hard link, which the receiver removes when it
opens the file. So messages are still received after their sender has left or died, and
``sfm_kernel.directory.clean`` knows a file's owner by its name, as for rings.

Source: the paper of ``sfm_kernel.speedes``, section 3.2 and Figure 3.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sfm_kernel._native import arena_bytes
from sfm_kernel.directory import Member
from sfm_kernel.errors import SFMError

Bytes = npt.NDArray[np.uint8]

HEADER = struct.Struct("<BxxxxxxxQQQ")
"""Whether it is read (0 or 1), the message's number, its bytes, and their offset from the header.
(The paper's header also has the type, which this library sends with the header's location.)"""

PAGE = 4096
ALIGNED = 64
WARM = 2.0
"""Seconds for which memory is kept for the next multicast: fresh pages cost more than copies."""

_files = itertools.count()  # the numbers of this process's files, one for each `Blocks`


class HeaderRef(NamedTuple):
    """The location of a receiver's header.

    Attributes:
        file: the file's name for this receiver.
        offset: bytes in the file before the header.
        number: the number in the header, since a location is used again and again.
    """

    file: str
    offset: int
    number: int


class _Block(NamedTuple):
    start: int
    end: int
    headers: dict[int, Member]  # the header's offset -> its receiver


def _kind(group: int) -> str:
    """The start of the kind of a group's files; the number of the file follows."""
    return f"multicast{group}_"


class Blocks:
    """The sender's side. It reserves memory when needed, and frees it after ``WARM`` seconds.

    Half of the file system always stays free; ``SFM_ARENA_BYTES`` is the limit of one sender (0: no
    blocks). Pages are reserved before they are written, so that a full ``/dev/shm`` is noticed.
    """

    def __init__(
        self, folder: str, process: Member, group: int, alive: Callable[[Member], bool]
    ) -> None:
        self._folder, self._process, self._alive = folder, process, alive
        self._kind = f"{_kind(group)}{next(_files)}"
        self._length = arena_bytes() // PAGE * PAGE  # of the file; pages are reserved when needed
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._linked: set[str] = set()
        self._lent: list[_Block] = []
        self._reserved = 0
        self._numbers = itertools.count(1)
        self._used = 0.0

    @property
    def path(self) -> str:
        """The path of the file under the sender's name for it."""
        return os.path.join(self._folder, f"{self._process.uid}.{self._kind}")

    def put(self, data: Bytes, receivers: Sequence[Member]) -> list[HeaderRef] | None:
        """Write the data once, behind a header for each receiver; returns the headers' locations.

        Returns None, and changes nothing, if there is no room or no such file can be made: the
        message must then be sent to each receiver. Cost: one copy.
        """
        heads = len(receivers) * HEADER.size
        body = -(-heads // ALIGNED) * ALIGNED
        start = self._find(-(-(body + data.nbytes) // PAGE) * PAGE)
        if start is None:
            return None
        end = start + -(-(body + data.nbytes) // PAGE) * PAGE
        try:
            self._reserve(end)
            files = [self._link(receiver) for receiver in receivers]
        except OSError:
            return None
        assert self._map is not None
        number = next(self._numbers)
        headers = {start + i * HEADER.size: receiver for i, receiver in enumerate(receivers)}
        for offset in headers:
            HEADER.pack_into(self._map, offset, 0, number, data.nbytes, start + body - offset)
        with memoryview(self._map) as view:
            view[start + body : start + body + data.nbytes] = data.data
        self._lent.append(_Block(start, end, headers))
        self._used = time.monotonic()
        return [HeaderRef(file, start, number) for file, start in zip(files, headers, strict=True)]

    def withdraw(self, header: HeaderRef) -> None:
        """Mark a header as read: its receiver does not know of it."""
        if self._map is not None:
            self._map[header.offset] = 1

    def free_unused(self) -> None:
        """Free memory that was not used for ``WARM`` seconds."""
        if not self._reserved or time.monotonic() < self._used + WARM:
            return
        self._reclaim(self._is_over)
        self._used = time.monotonic()  # if blocks remain, a receiver has not received for seconds
        if not self._lent:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
                self._reserved = 0
                os.ftruncate(self._fd, self._length)

    def close(self) -> None:
        """Remove the sender's name of the file. Receivers that have not opened it use theirs."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # the world was removed
                os.unlink(self.path)
            os.close(self._fd)
            self._fd, self._map, self._lent = -1, None, []

    def _find(self, length: int) -> int | None:
        """The start of the lowest gap of this length; None if there is none."""
        for done in (self._is_read, self._is_over):
            self._reclaim(done)
            start = 0
            for block in sorted(self._lent):
                if block.start - start >= length:
                    break
                start = block.end
            if self._length - start >= length:
                return start
        return None

    def _reclaim(self, done: Callable[[_Block], bool]) -> None:
        self._lent = [block for block in self._lent if not done(block)]

    def _unread(self, block: _Block) -> list[Member]:
        assert self._map is not None
        return [receiver for offset, receiver in block.headers.items() if not self._map[offset]]

    def _is_read(self, block: _Block) -> bool:
        return not self._unread(block)

    def _is_over(self, block: _Block) -> bool:
        """Whether no living process has yet to read the block. This takes some µs for each."""
        return not any(map(self._alive, self._unread(block)))

    def _link(self, receiver: Member) -> str:
        """The file's name for this receiver."""
        name = f"{self._process.uid}-{receiver.uid}.{self._kind}"
        if receiver.uid not in self._linked:
            os.link(self.path, os.path.join(self._folder, name))
            self._linked.add(receiver.uid)
        return name

    def _create(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path, flags, 0o600)
        try:
            os.ftruncate(fd, self._length)
            self._map = mmap.mmap(fd, self._length)
        except (OSError, ValueError) as error:
            os.unlink(self.path)
            os.close(fd)
            raise OSError(f"no memory for {self.path}: {error}") from error
        self._fd = fd

    def _reserve(self, end: int) -> None:
        """Reserve pages up to ``end``. Raises OSError, and then reserves none."""
        if self._fd < 0:
            self._create()
        missing = end - self._reserved
        if missing <= 0:
            return
        room = os.statvfs(self._folder)
        if (room.f_bavail * room.f_frsize - missing) * 2 < room.f_blocks * room.f_frsize:
            raise OSError("half of the file system must stay free")
        os.posix_fallocate(self._fd, self._reserved, missing)
        self._reserved = end


class Reader:
    """The receiver's side: the files of all senders of blocks, each mapped once."""

    def __init__(self, folder: str, process: Member, group: int) -> None:
        self._folder, self._process = folder, process
        self._marker = f"-{process.uid}.{_kind(group)}"
        self._maps: dict[str, mmap.mmap] = {}
        self._lock = threading.Lock()

    def take(self, header: HeaderRef, make: Callable[[memoryview], Any]) -> Any:
        """Call ``make`` with the message's bytes, which it must copy; then mark them as read.
        Returns the result of ``make``."""
        shared = self._maps.get(header.file) or self._open(header.file)
        is_read, number, nbytes, offset = HEADER.unpack_from(shared, header.offset)
        if is_read or number != header.number:
            raise SFMError(
                f"a multicast to {self._process.name!r} is lost: its sender took this process for "
                f"dead and has used the memory again. Start the processes anew"
            )
        start = header.offset + offset
        with memoryview(shared) as view, view[start : start + nbytes] as data:
            made = make(data)
        self._fence()
        shared[header.offset] = 1
        return made

    def close(self) -> None:
        """Release the files; remove those that were never opened."""
        self._maps.clear()
        with contextlib.suppress(OSError):  # the world was removed
            for file in os.listdir(self._folder):
                if self._marker in file:
                    os.unlink(os.path.join(self._folder, file))

    def _open(self, file: str) -> mmap.mmap:
        path = os.path.join(self._folder, os.path.basename(file))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise SFMError(
                f"a multicast to {self._process.name!r} is lost: another process has removed {path}"
            ) from None
        try:
            self._maps[file] = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        os.unlink(path)
        return self._maps[file]

    def _fence(self) -> None:
        """Order the copy before the mark, even on processors on which a store can overtake a load:
        a release, and then an acquire of the same lock."""
        with self._lock:
            pass
        with self._lock:
            pass
