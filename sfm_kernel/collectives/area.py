"""Shared memory for arrays that are too large for a tree: a file that all members map.

It is made when it is first needed, as large as needed then, up to ``CHUNK`` bytes for each member,
and is kept: fresh memory costs more than a copy. Larger arrays go through it in chunks. If shared
memory is short there is no area; the members agree on that, and send messages instead.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import Operation
from sfm_kernel.collectives import doubling, rabenseifner, ring
from sfm_kernel.collectives.call import Call
from sfm_kernel.collectives.operations import put

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 1 << 20
"""Bytes of a member's slot, at most: a core's cache holds them."""

LEAST = 1 << 16
"""Bytes of a member's slot, at least."""

ALIGN = 64
"""Bytes of a cache line: no two members write to the same one."""


class Area:
    """``size`` slots, and one more for results, as arrays of bytes. Slot 0 begins the file."""

    def __init__(self, path: str, fresh: str, size: int, nbytes: int) -> None:
        import numpy as np

        self.nbytes = nbytes
        length = (size + 1) * nbytes
        descriptor = _open(path, fresh, length)
        try:
            self._memory = mmap.mmap(descriptor, length)
        finally:
            os.close(descriptor)
        slots = np.frombuffer(self._memory, np.uint8).reshape(size + 1, nbytes)
        self.slots, self.result = [*slots[:size]], slots[size]


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


def area_for(call: Call, nbytes: int) -> Area | None:
    """An area with slots of ``nbytes``, or ``CHUNK`` if that is less; None if there can be none.

    All members call it with the same ``nbytes``, and all get the same answer.
    """
    team = call.team
    needed = min(CHUNK, max(LEAST, 1 << (nbytes - 1).bit_length()))
    if team.area is not None and team.area.nbytes >= needed:
        return team.area
    if team.no_area is not None and needed >= team.no_area:
        return None
    path = team.path(f"area of {needed}", team.epoch)
    area: Area | None = None
    with contextlib.suppress(OSError, ValueError):  # no room, or no address space
        area = Area(path, team.fresh_path(), call.size, needed)
    try:
        _, all_have_it = call.meet(Operation.MIN, 1 if area else 0, phase=1)
    finally:  # all members have mapped it, or none will use it
        with contextlib.suppress(OSError):
            os.unlink(path)
    if not all_have_it or area is None:
        team.no_area = needed
        return None
    team.area = area
    return area


def chunks(call: Call, nbytes: int) -> Iterator[tuple[Area, int, int]]:
    """Cut ``nbytes`` into chunks that fit into an area's slot: (area, start, stop)."""
    area = area_for(call, nbytes)
    if area is None:
        raise MemoryError("shared memory has no room for an area: name another algorithm")
    for start in range(0, nbytes, area.nbytes):
        yield area, start, min(start + area.nbytes, nbytes)


def reduce_in_area(call: Call, value: NDArray[Any], out: Any) -> NDArray[Any]:
    """An allreduce of large arrays with a ufunc: every member reduces a share of each chunk."""
    import numpy as np

    assert call.op is not None
    area = area_for(call, value.nbytes)
    if area is None:
        power = call.size & (call.size - 1) == 0
        if value.nbytes < LEAST:
            return np.asarray(doubling.allreduce(call, value))
        return np.asarray((rabenseifner if power else ring).allreduce(call, value))
    dtype, item = value.dtype, value.dtype.itemsize
    fits = out is not None and (out is value or not np.may_share_memory(out, value))
    result = out if fits else np.empty_like(value)
    source, target = value.reshape(-1), result.reshape(-1)
    slots = [slot[: area.nbytes // item * item].view(dtype) for slot in area.slots]
    shared = area.result[: area.nbytes // item * item].view(dtype)
    step = max(1, ALIGN // item)
    # Results have a separate slot: it is written only when all members have come to the next round,
    # and so have read the last result. No member reads another's slot after the second round.
    for start in range(0, source.size, shared.size):
        count = min(shared.size, source.size - start)
        given, total = source[start : start + count], target[start : start + count]
        blocks = -(-count // step)
        cuts = [min(blocks * nth // call.size * step, count) for nth in range(call.size)] + [count]
        low, high = cuts[call.rank], cuts[call.rank + 1]
        slot = slots[call.rank]
        slot[:low], slot[high:count] = given[:low], given[high:]
        call.meet(Operation.KEEP, None, phase=2)
        shares = [slot[low:high] for slot in slots]
        shares[call.rank] = given[low:high]  # no other member reads it: it was never copied
        left = shares[0]
        for right in shares[1:]:
            left = call.op(left, right, out=shared[low:high])  # type: ignore[call-arg]
        call.meet(Operation.KEEP, None, phase=3)
        total[:] = shared[:count] if call.size > 1 else given
    return result if out is None or result is out else np.asarray(put(out, result))
