"""Shared memory for arrays that are too large for a tree: a file that all members map.

It is made when it is first needed, as large as needed then, up to ``PIECE`` bytes for each member,
and is kept: fresh memory costs more than a copy. Larger arrays go through it in pieces. If shared
memory is short there is no area; the members agree on that, and send messages instead.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import Operation
from sfm_kernel.collectives import doubling, rabenseifner, ring
from sfm_kernel.collectives.call import Call

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIECE = 1 << 20
"""Bytes of a member's place at most: what a core's own cache holds."""

LEAST = 1 << 16
ALIGN = 64

Meet = Callable[..., tuple[int, Any]]


class Area:
    """``size`` places, and one more for results, as arrays of bytes. Place 0 begins the file."""

    def __init__(self, path: str, fresh: str, size: int, nbytes: int) -> None:
        import numpy as np

        self.nbytes = nbytes
        length = (size + 1) * nbytes
        descriptor = _open(path, fresh, length)
        try:
            self._memory = mmap.mmap(descriptor, length)
        finally:
            os.close(descriptor)
        whole = np.frombuffer(self._memory, np.uint8)
        self.places = [whole[nth * nbytes : (nth + 1) * nbytes] for nth in range(size)]
        self.result = whole[size * nbytes :]


def _open(path: str, fresh: str, length: int) -> int:
    """A descriptor of the file of this length; made, with all its pages, if there is none."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags)
    room = os.statvfs(os.path.dirname(path))
    if length > room.f_bavail * room.f_frsize // 2:
        raise OSError(f"{length} bytes are more than half of what is free")
    descriptor = os.open(fresh, flags | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, length)
        os.link(fresh, path)
    except FileExistsError:  # another member was faster
        os.close(descriptor)
        return os.open(path, flags)
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        os.unlink(fresh)
    return descriptor


def area_for(call: Call, meet: Meet, nbytes: int) -> Area | None:
    """An area with places of ``nbytes``, or ``PIECE`` if that is less; None if there can be none.

    All members call it with the same ``nbytes``, and all get the same answer.
    """
    team = call.team
    wanted = min(PIECE, max(LEAST, 1 << (nbytes - 1).bit_length()))
    there = team.area
    if there is not None and there.nbytes >= wanted:
        return there
    if team.no_area is not None and wanted >= team.no_area:
        return None
    path = team.path(f"area of {wanted}", team.epoch)
    made: Area | None = None
    try:
        made = Area(path, team.fresh_path(), call.size, wanted)
    except (OSError, ValueError):
        pass  # no room, or no address space
    try:
        _, worked = meet(call, Operation.MIN, 1 if made else 0, phase=1)
    finally:  # all have it, or it is of no use
        with contextlib.suppress(OSError):
            os.unlink(path)
    if worked == 0 or made is None:
        team.no_area = wanted
        return None
    team.area = made
    return made


def pieces(call: Call, meet: Meet, nbytes: int) -> Iterator[tuple[Area, int, int]]:
    """Cut ``nbytes`` into what an area's place holds: (area, start, stop)."""
    area = area_for(call, meet, nbytes)
    if area is None:
        raise MemoryError("shared memory has no room for an area: name another algorithm")
    for start in range(0, nbytes, area.nbytes):
        yield area, start, min(start + area.nbytes, nbytes)


def reduce_in_area(call: Call, meet: Meet, value: NDArray[Any], out: Any) -> NDArray[Any]:
    """An allreduce of large arrays with a ufunc: every member reduces a part of each piece."""
    import numpy as np

    assert call.op is not None
    area = area_for(call, meet, value.nbytes)
    if area is None:
        power = call.size & (call.size - 1) == 0
        if value.nbytes < LEAST:
            return np.asarray(doubling.allreduce(call, value))
        return np.asarray((rabenseifner if power else ring).allreduce(call, value))
    dtype, item = value.dtype, value.dtype.itemsize
    fits = out is not None and (out is value or not np.may_share_memory(out, value))
    result = out if fits else np.empty_like(value)
    source, target = value.reshape(-1), result.reshape(-1)
    places = [place[: area.nbytes // item * item].view(dtype) for place in area.places]
    shared = area.result[: area.nbytes // item * item].view(dtype)
    step = max(1, ALIGN // item)
    # Results have a place of their own: it is written only when all have come to the next round,
    # having read what they wanted. What members bring is read by nobody after the second round.
    for start in range(0, source.size, shared.size):
        count = min(shared.size, source.size - start)
        mine, whole = source[start : start + count], target[start : start + count]
        blocks = -(-count // step)
        cuts = [min(blocks * nth // call.size * step, count) for nth in range(call.size)] + [count]
        low, high = cuts[call.rank], cuts[call.rank + 1]
        own = places[call.rank]
        own[:low], own[high:count] = mine[:low], mine[high:]
        meet(call, Operation.KEEP, None, phase=2)
        parts = [place[low:high] for place in places]
        parts[call.rank] = mine[low:high]  # nobody else needs it: it was never copied
        total = parts[0]
        for part in parts[1:]:
            call.op(total, part, out=shared[low:high])  # type: ignore[call-arg]
            total = shared[low:high]
        meet(call, Operation.KEEP, None, phase=3)
        whole[:] = shared[:count] if call.size > 1 else mine
    if out is not None and result is not out:
        out[...] = result
        return np.asarray(out)
    return result
