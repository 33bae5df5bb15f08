"""The constants that are given in a buffer's stead: BOTTOM, IN_PLACE, BUFFER_AUTOMATIC."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Self, final

from sfm_kernel.mpi.buffers.exporter import Exporter


class Constant(Exporter):
    """An address that stands for something else. There is one object of each type."""

    _name: ClassVar[str]
    _value: ClassVar[int]
    _only: ClassVar[Any] = None

    def __new__(cls) -> Self:
        if cls._only is None:
            cls._only = cls._at(0, 0)
        only: Self = cls._only
        return only

    def __int__(self) -> int:
        return self._value

    __hash__: ClassVar[Any] = __int__

    def __bool__(self) -> bool:
        return self._value != 0

    def __eq__(self, other: object, /) -> bool:
        if isinstance(other, type(self)):
            return True
        try:
            return self._value == operator.index(other)  # type: ignore[arg-type]
        except TypeError:
            return NotImplemented

    def __ne__(self, other: object, /) -> bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:  # type: ignore[override]
        return self._name


@final
class BottomType(Constant):
    """The type of BOTTOM, the address 0: displacements of the datatype are addresses."""

    _name = "BOTTOM"
    _value = 0

    def __index__(self) -> int:
        return self._value


@final
class InPlaceType(Constant):
    """The type of IN_PLACE: what is to be sent lies in the receive buffer."""

    _name = "IN_PLACE"
    _value = -1


@final
class BufferAutomaticType(Constant):
    """The type of BUFFER_AUTOMATIC: MPI finds the memory that buffered sends need."""

    _name = "BUFFER_AUTOMATIC"
    _value = -2


BOTTOM = BottomType()
IN_PLACE = InPlaceType()
BUFFER_AUTOMATIC = BufferAutomaticType()
