"""Blocks of shared memory that are written once and read by many: how a large multicast travels.

A sender has one file. A message to several nodes of this machine is written into a block of it
behind as many headers as there are receivers (Figure 3 of the paper), and each receiver is sent
the place of its own header. It copies the message out and marks its header as read; a block whose
headers are all read is free. Only the sender changes anything else.

The file has a name of its own for each receiver, by a hard link, which the receiver removes when it
opens the file. So what a sender wrote is still received after it has left or died, and
``sfm_kernel.directory.clean`` finds by its name whose a file is, as it does for rings.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 3.2 and Figure 3.
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

from sfm_kernel.errors import SFMError
from sfm_kernel.transport.base import Member
from sfm_kernel.transport.shm import arena_bytes

Bytes = npt.NDArray[np.uint8]

HEADER = struct.Struct("<BxxxxxxxQQQ")
"""Read (0 or 1), the message's number, its bytes, and how far from the header they begin. (The
paper's header has the type as well, which here travels with the header's place.)"""

PAGE = 4096
ALIGNED = 64
WARM = 2.0
"""Seconds for which memory is kept for the next multicast: fresh pages cost more than copies."""

_files = itertools.count()  # of this process; one for every `Blocks`


class Place(NamedTuple):
    """Where a receiver finds its header: the file's name for it, and the bytes before it.

    ``number`` is the header's as well: a place is used again and again.
    """

    file: str
    at: int
    number: int


class _Block(NamedTuple):
    start: int
    end: int
    headers: dict[int, Member]  # the header's place -> who reads it


def _kind(group: int) -> str:
    """How the kinds of a group's files begin: after it comes which of them."""
    return f"multicast{group}_"


class Blocks:
    """The sender's side. Takes memory as it is used and gives it back ``WARM`` seconds later.

    Never more than leaves half of the file system free (``SFM_ARENA_BYTES`` is the limit of one
    sender, 0 for none of this): the pages are reserved before they are written, so that a full
    ``/dev/shm`` is noticed here.
    """

    def __init__(
        self, folder: str, own: Member, group: int, alive: Callable[[Member], bool]
    ) -> None:
        self._folder, self._own, self._alive = folder, own, alive
        self._kind = f"{_kind(group)}{next(_files)}"
        self._context_id = arena_bytes() // PAGE * PAGE
        self._fd = -1
        self._map: mmap.mmap | None = None
        self._linked: set[str] = set()
        self._lent: list[_Block] = []
        self._reserved = 0
        self._numbers = itertools.count(1)
        self._used = 0.0

    @property
    def path(self) -> str:
        """The sender's own name of the file."""
        return os.path.join(self._folder, f"{self._own.uid}.{self._kind}")

    def put(self, data: Bytes, receivers: Sequence[Member]) -> list[Place] | None:
        """Write the data once, behind a header for each receiver; where their headers are.

        None, and nothing is changed, where there is no room or no such file can be made: send
        separately then. Cost: one copy.
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
        headers = {start + nth * HEADER.size: one for nth, one in enumerate(receivers)}
        for at in headers:
            HEADER.pack_into(self._map, at, 0, number, data.nbytes, start + body - at)
        with memoryview(self._map) as view:
            view[start + body : start + body + data.nbytes] = data.data
        self._lent.append(_Block(start, end, headers))
        self._used = time.monotonic()
        return [Place(file, at, number) for file, at in zip(files, headers, strict=True)]

    def forgo(self, place: Place) -> None:
        """The receiver was not told of its header, and will not read it."""
        if self._map is not None:
            self._map[place.at] = 1

    def tend(self) -> None:
        """Take back what was read; give memory back that was not used for a while."""
        if not self._reserved or time.monotonic() < self._used + WARM:
            return
        self._reclaim(self._is_over)
        self._used = time.monotonic()  # if not now: some receiver has not looked for seconds
        if not self._lent:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, 0)
                self._reserved = 0
                os.ftruncate(self._fd, self._context_id)

    def close(self) -> None:
        """Remove the file's own name. Who has yet to open it still has its own."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # the world is gone
                os.unlink(self.path)
            os.close(self._fd)
            self._fd, self._map, self._lent = -1, None, []

    def _find(self, length: int) -> int | None:
        """The lowest gap that is long enough."""
        for done in (self._is_read, self._is_over):
            self._reclaim(done)
            start = 0
            for block in sorted(self._lent):
                if block.start - start >= length:
                    break
                start = block.end
            if self._context_id - start >= length:
                return start
        return None

    def _reclaim(self, done: Callable[[_Block], bool]) -> None:
        self._lent = [block for block in self._lent if not done(block)]

    def _unread(self, block: _Block) -> list[Member]:
        assert self._map is not None
        return [one for at, one in block.headers.items() if not self._map[at]]

    def _is_read(self, block: _Block) -> bool:
        return not self._unread(block)

    def _is_over(self, block: _Block) -> bool:
        """Whether nobody will read it any more. Asking whether somebody lives takes some µs."""
        return not any(map(self._alive, self._unread(block)))

    def _link(self, receiver: Member) -> str:
        """The file's name for this receiver."""
        name = f"{self._own.uid}-{receiver.uid}.{self._kind}"
        if receiver.uid not in self._linked:
            os.link(self.path, os.path.join(self._folder, name))
            self._linked.add(receiver.uid)
        return name

    def _create(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path, flags, 0o600)
        try:
            os.ftruncate(fd, self._context_id)
            self._map = mmap.mmap(fd, self._context_id)
        except (OSError, ValueError) as error:
            os.unlink(self.path)
            os.close(fd)
            raise OSError(f"no memory for {self.path}: {error}") from error
        self._fd = fd

    def _reserve(self, end: int) -> None:
        """Make sure that there are pages up to ``end``. Raises OSError; none was taken then."""
        if self._fd < 0:
            self._create()
        missing = end - self._reserved
        if missing <= 0:
            return
        room = os.statvfs(self._folder)
        if (room.f_bavail * room.f_frsize - missing) * 2 < room.f_blocks * room.f_frsize:
            raise OSError("half of the file system stays free")
        os.posix_fallocate(self._fd, self._reserved, missing)
        self._reserved = end


class Reader:
    """The receiver's side: the files of those who have sent a block, each mapped once."""

    def __init__(self, folder: str, own: Member, group: int) -> None:
        self._folder, self._own = folder, own
        self._mine = f"-{own.uid}.{_kind(group)}"
        self._maps: dict[str, mmap.mmap] = {}
        self._lock = threading.Lock()

    def take(self, place: Place, make: Callable[[memoryview], Any]) -> Any:
        """What ``make`` makes of the message's bytes, which it copies; then marks it as read."""
        shared = self._maps.get(place.file) or self._open(place.file)
        is_read, number, nbytes, offset = HEADER.unpack_from(shared, place.at)
        if is_read or number != place.number:
            raise SFMError(
                f"a multicast to {self._own.name!r} is lost: its sender took this process for dead "
                f"and has used the memory again. Start the processes anew"
            )
        start = place.at + offset
        with memoryview(shared) as view, view[start : start + nbytes] as data:
            made = make(data)
        self._fence()
        shared[place.at] = 1
        return made

    def close(self) -> None:
        """Let go of the files; remove what was never opened."""
        self._maps.clear()
        with contextlib.suppress(OSError):  # the world is gone
            for file in os.listdir(self._folder):
                if self._mine in file:
                    os.unlink(os.path.join(self._folder, file))

    def _open(self, file: str) -> mmap.mmap:
        path = os.path.join(self._folder, os.path.basename(file))
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise SFMError(
                f"a multicast to {self._own.name!r} is lost: somebody has removed {path}"
            ) from None
        try:
            self._maps[file] = mmap.mmap(fd, 0)
        finally:
            os.close(fd)
        os.unlink(path)
        return self._maps[file]

    def _fence(self) -> None:
        """What was copied out was read before the mark is seen, also on processors that let a
        store overtake a load: a release, and an acquire of the same lock after it."""
        with self._lock:
            pass
        with self._lock:
            pass
