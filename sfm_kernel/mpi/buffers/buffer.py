"""MPI.buffer: some memory, as bytes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Self, SupportsIndex, final, overload

import numpy as np

from sfm_kernel.mpi.buffers.acquired import CPU, ON_HOST, Acquired
from sfm_kernel.mpi.buffers.exporter import Exporter
from sfm_kernel.mpi.buffers.exporters import acquire
from sfm_kernel.mpi.buffers.memory import address_of

_NOTHING: Any = object()


@final
class buffer(Exporter):
    """Some memory, as bytes: of another object, at an address, or allocated.

    ``buffer(obj)`` is a view of the memory of ``obj``, read-only if that is. Items are ints, slices
    are buffers. Others see the memory by ``memoryview(it)``, ``numpy.frombuffer(it)``, ….
    """

    _address = 0
    _exporter: Any = None

    def __new__(cls, buf: Any = _NOTHING, /) -> Self:
        if buf is _NOTHING:
            return cls._at(0, 0)
        return cls._of(acquire(buf, into=False))

    @classmethod
    def _of(cls, found: Acquired, readonly: bool = False) -> Self:
        self = found.memory.view(cls)
        self._address = address_of(found.memory)
        self._exporter, self._device = found.exporter, found.device
        if readonly:
            self.flags.writeable = False
        return self

    @staticmethod
    def allocate(nbytes: int, clear: bool = False) -> buffer:
        """A buffer of new memory, in bytes; zeros if *clear*, else not initialized."""
        size = operator.index(nbytes)
        if size < 0:
            raise ValueError(f"a size is not negative: {size}")
        memory = (np.zeros if clear else np.empty)(size, np.uint8)
        return buffer._of(Acquired(memory, "B", CPU, memory))

    @staticmethod
    def frombuffer(obj: Any, readonly: bool = False) -> buffer:
        """A view of the memory of an object, which must be writable unless *readonly*."""
        return buffer._of(acquire(obj, into=not readonly), readonly)

    @staticmethod
    def fromaddress(address: int, nbytes: int, readonly: bool = False) -> buffer:
        """The memory at an address, in bytes; the caller keeps it alive."""
        where, size = operator.index(address), operator.index(nbytes)
        if size < 0:
            raise ValueError(f"a size is not negative: {size}")
        if size > 0 and where == 0:
            raise ValueError("there is no memory at address 0")
        self = buffer._at(where, size, readonly)
        self._address = where
        return self

    @property
    def address(self) -> int:
        """Where the memory begins; 0 if there is none."""
        return self._address

    @property
    def obj(self) -> Any:
        """The object whose memory it is, or None."""
        return self._exporter

    @property
    def readonly(self) -> bool:
        """Whether the memory cannot be written by this buffer."""
        return not self.flags.writeable

    @property
    def format(self) -> str:
        """The format of each item, as in the module struct."""
        return "B"

    def cast(self, format: str, shape: Sequence[int] | EllipsisType = ...) -> memoryview[Any]:
        """The memory as a memoryview of another format or shape."""
        view = self._on_host().data
        cast: Callable[..., memoryview[Any]] = view.cast
        return cast(format) if shape is ... else cast(format, shape)

    def tobytes(self, order: str | None = None) -> bytes:
        """A copy of the bytes. The order means nothing here."""
        return super(buffer, self._on_host()).tobytes()

    def toreadonly(self) -> buffer:
        """The same memory as a buffer that cannot be written."""
        other = self._view(self.view(buffer), 0)
        other._exporter = self if self._exporter is None else self._exporter
        other.flags.writeable = False
        return other

    def release(self) -> None:
        """Let go of the memory: the buffer is empty afterwards. Views of it must not be used."""
        nothing: Any = (1, (0,), self.dtype, False, b"")
        self.__setstate__(nothing)
        self._address, self._exporter, self._device = 0, None, CPU

    @overload  # type: ignore[override]
    def __getitem__(self, item: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, item: slice, /) -> buffer: ...
    def __getitem__(self, item: Any, /) -> int | buffer:
        if not isinstance(item, slice):
            return int(super(buffer, self._on_host()).__getitem__(operator.index(item)))
        part = _range(item, len(self))
        return self._view(super().__getitem__(part), part.start)

    @overload  # type: ignore[override]
    def __setitem__(self, item: SupportsIndex, value: int, /) -> None: ...
    @overload
    def __setitem__(self, item: slice, value: Any, /) -> None: ...
    def __setitem__(self, item: Any, value: Any, /) -> None:
        self._on_host()
        if self.readonly:
            raise TypeError("this buffer is read-only")
        if not isinstance(item, slice):
            super().__setitem__(operator.index(item), operator.index(value))
            return
        part = _range(item, len(self))
        try:
            given: Any = operator.index(value)
        except TypeError:
            given = acquire(value, into=False).within_reach()
            if given.size != part.stop - part.start:
                raise ValueError(
                    f"{given.size} bytes do not fit a slice of {part.stop - part.start}"
                ) from None
        super().__setitem__(part, given)

    def __delitem__(self, item: Any, /) -> None:
        raise NotImplementedError("bytes of a buffer cannot be deleted: take a slice")

    def _on_host(self) -> Self:
        if self._device not in ON_HOST:
            raise BufferError(
                f"the buffer is in memory of a device (DLPack's type {self._device}): copy it to "
                "the host first"
            )
        return self

    def _view(self, part: Any, start: int) -> buffer:
        """What numpy cut out of this."""
        view: buffer = part
        view._address, view._exporter, view._device = self._address + start, self, self._device
        return view


def _range(item: slice, size: int) -> slice:
    start, stop, step = item.indices(size)
    if step != 1:
        raise IndexError("slices of a buffer have no step")
    return slice(start, max(start, stop))


memory = buffer
