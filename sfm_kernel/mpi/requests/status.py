"""Status: what a receive or a probe has got."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from sfm_kernel.mpi.base.constants import (
    ANY_SOURCE,
    ANY_TAG,
    F_ERROR,
    F_SOURCE,
    F_TAG,
    SUCCESS,
    UNDEFINED,
)
from sfm_kernel.mpi.base.errors import code_for

if TYPE_CHECKING:
    from sfm_kernel.mpi.datatypes import Datatype
    from sfm_kernel.mpi.engine.operation import Operation

_COUNT, _CANCELLED, _SOURCE, _TAG, _ERROR = 0, 1, F_SOURCE, F_TAG, F_ERROR
_EMPTY = array.array("q", (0, 0, ANY_SOURCE, ANY_TAG, SUCCESS))


class Status:
    """Where a message came from, its tag, its length, and whether there was an error."""

    __slots__ = ("__weakref__", "_fields", "_length")

    _fields: array.array[int]
    _length: Callable[[], int] | None
    """Finds out the length, where that takes time: of a pickled object."""

    def __new__(cls, status: Status | None = None) -> Self:
        if status is not None and not isinstance(status, Status):
            raise TypeError(f"Status() takes a Status or None, not {type(status).__name__}")
        self = super().__new__(cls)
        self._fields = array.array("q", _EMPTY if status is None else status._fields)
        self._length = None if status is None else status._length
        return self

    def _set(self, source: int, tag: int, count: int | Callable[[], int] = 0) -> None:
        fields = self._fields
        fields[_SOURCE], fields[_TAG], fields[_ERROR], fields[_CANCELLED] = source, tag, SUCCESS, 0
        if callable(count):
            self._length = count
        else:
            self._length = None
            fields[_COUNT] = count

    def _set_from(self, operation: Operation | None) -> None:
        """What an operation that is done has come to; empty for None."""
        if operation is None:
            self._set(ANY_SOURCE, ANY_TAG)
            return
        self._set(operation.source, operation.tag, operation.count)
        self._fields[_CANCELLED] = operation.cancelled
        if isinstance(operation.failure, Exception):
            self._fields[_ERROR] = code_for(operation.failure)

    def _nbytes(self) -> int:
        if self._length is not None:
            self._fields[_COUNT] = self._length()
            self._length = None
        return self._fields[_COUNT]

    def _set_nbytes(self, nbytes: int) -> None:
        self._length = None
        self._fields[_COUNT] = nbytes

    def Get_source(self) -> int:
        """The rank that sent."""
        return self._fields[_SOURCE]

    def Set_source(self, source: int) -> None:
        """Set the rank."""
        self._fields[_SOURCE] = source

    def Get_tag(self) -> int:
        """The message's tag."""
        return self._fields[_TAG]

    def Set_tag(self, tag: int) -> None:
        """Set the tag."""
        self._fields[_TAG] = tag

    def Get_error(self) -> int:
        """The error code; SUCCESS if there was none."""
        return self._fields[_ERROR]

    def Set_error(self, error: int) -> None:
        """Set the error code."""
        self._fields[_ERROR] = error

    def Get_count(self, datatype: Datatype | None = None) -> int:
        """How many elements of this type (bytes, without one) came; UNDEFINED if not whole ones.

        Of an object: the number of bytes that it has when it is pickled.
        """
        nbytes = self._nbytes()
        size = 1 if datatype is None else datatype.Get_size()
        if size == 0:
            return 0 if nbytes == 0 else UNDEFINED
        return UNDEFINED if nbytes % size else nbytes // size

    def Get_elements(self, datatype: Datatype) -> int:
        """How many basic elements came, of which elements of this type consist."""
        return datatype._elements_in(self._nbytes())

    def Set_elements(self, datatype: Datatype, count: int) -> None:
        """Set the length to that of ``count`` basic elements of this type."""
        self._set_nbytes(datatype._bytes_of_elements(count))

    def Is_cancelled(self) -> bool:
        """Whether the operation was cancelled."""
        return bool(self._fields[_CANCELLED])

    def Set_cancelled(self, flag: bool) -> None:
        """Set whether it was cancelled."""
        self._fields[_CANCELLED] = bool(flag)

    source = property(Get_source, Set_source, doc="The rank that sent.")
    tag = property(Get_tag, Set_tag, doc="The message's tag.")
    error = property(Get_error, Set_error, doc="The error code.")
    cancelled = property(Is_cancelled, Set_cancelled, doc="Whether it was cancelled.")
    count = property(_nbytes, _set_nbytes, doc="The length in bytes.")

    def tomemory(self) -> memoryview:
        """The fields as memory, which can be changed."""
        self._nbytes()
        return memoryview(self._fields)

    def py2f(self) -> list[int]:
        """The fields as a list."""
        return self.tomemory().tolist()

    @classmethod
    def f2py(cls, arg: list[int]) -> Self:
        """A status from such a list."""
        self = cls()
        self._fields = array.array("q", arg)
        return self

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return self.py2f() == other.py2f()

    def __ne__(self, other: object, /) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (), self.__getstate__()

    def __getstate__(self) -> dict[str, int]:
        count, cancelled, source, tag, error = self.py2f()
        return {
            "source": source,
            "tag": tag,
            "error": error,
            "cancelled": cancelled,
            "count": count,
        }

    def __setstate__(self, state: dict[str, int]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
