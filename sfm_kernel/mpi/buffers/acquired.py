"""What is known of the memory of an object, however it offers it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sfm_kernel.mpi.buffers.memory import Bytes, is_readable

CPU, CUDA = 1, 2
ON_HOST = frozenset((CPU, 3, 11, 13))
"""DLPack's numbers of devices whose memory the processor reaches: host memory, pinned, managed."""


class Acquired(NamedTuple):
    """Memory of an object.

    Attributes:
        memory: its bytes; they may be out of the processor's reach.
        format: the code of its items, as in PEP 3118.
        device: DLPack's number.
        exporter: what keeps the memory alive.
    """

    memory: Bytes
    format: str
    device: int
    exporter: Any

    def within_reach(self) -> Bytes:
        """The memory.

        Raises:
            BufferError: the processor cannot reach it.
        """
        if self.device not in ON_HOST and not is_readable(self.memory):
            raise BufferError(
                f"the buffer is in memory of a device (DLPack's type {self.device}) that the "
                "processor cannot reach: copy it to the host first (cupy: .get(), torch: .cpu()), "
                "and what is received back to the device"
            )
        return self.memory


def code_of(kind: str, itemsize: int) -> str:
    """The code of a NumPy kind of this size; that of bytes if NumPy has no such type."""
    if kind == "c" and itemsize == 4:
        return "Ze"
    if not kind or kind not in "biufc":
        return "B"
    try:
        return np.dtype(f"{kind}{itemsize}").char
    except TypeError:
        return "B"


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> bool:
    """Whether the items follow one another, in C's or Fortran's order."""
    if strides is None:
        return True
    dimensions = list(zip(shape, strides, strict=True))
    return _follow(dimensions[::-1], itemsize) or _follow(dimensions, itemsize)


def _follow(dimensions: list[tuple[int, int]], step: int) -> bool:
    """Whether each stride, from the fastest on, is where the items before it end."""
    for size, stride in dimensions:
        if size > 1 and stride != step:
            return False
        step *= size
    return True
