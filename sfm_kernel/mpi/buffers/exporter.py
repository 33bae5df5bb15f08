"""Exporter: a class of Python whose objects offer memory to others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from sfm_kernel.mpi.buffers.acquired import CPU
from sfm_kernel.mpi.buffers.memory import memory_at


class Exporter(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """An object with memory, of which ``memoryview`` and whatever reads buffers gets a view.

    ``__buffer__`` would do, but Python 3.11 does not know it: there only types written in C offer
    memory. So this is an array underneath. It is none to its users: it has no arithmetic, is equal
    only to itself, and holds ints.
    """

    _device = CPU
    """Where the memory is, as DLPack numbers devices."""

    __array_ufunc__: ClassVar[Any] = None
    __hash__: ClassVar[Any] = object.__hash__
    __eq__: ClassVar[Any] = object.__eq__
    __ne__: ClassVar[Any] = object.__ne__

    @classmethod
    def _at(cls, address: int, nbytes: int, readonly: bool = False, owner: Any = None) -> Self:
        """One whose memory is at an address."""
        return memory_at(address, nbytes, readonly, owner).view(cls)

    def __bool__(self) -> bool:
        return self.size != 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __contains__(self, value: object) -> bool:
        return value in self.tolist()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.size} bytes>"

    def __str__(self) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be pickled: pickle its bytes(…)")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()
