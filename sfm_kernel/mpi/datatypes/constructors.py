"""The calls of Datatype that make datatypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from sfm_kernel.mpi.base.constants import ORDER_C
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.keyvals import HasAttributes
from sfm_kernel.mpi.datatypes import creation, named
from sfm_kernel.mpi.datatypes.state import TypeState

if TYPE_CHECKING:
    from sfm_kernel.mpi.datatypes.datatype import Datatype


class Constructors(HasAttributes, Handle[TypeState]):
    """New datatypes: of others, and by what they can hold.

    Blocks are elements one after the other. What is made has the class of what it is made of.

    Raises, every call:
        Exception: ERR_TYPE: a datatype is null. ERR_COUNT: a number of elements is negative.
            ERR_ARG: the arguments do not fit together.
        ValueError: sequences that must be equally long are not.
        TypeError: what should be a whole number is none.
    """

    __slots__ = ()

    def Dup(self) -> Self:
        """A duplicate, with the attributes whose keys want it; committed if this one is."""
        state = creation.duplicate(self._live)
        self._copy_attributes(state)
        return self._of(state)

    Create_dup = Dup

    def Create_contiguous(self, count: int) -> Self:
        """*count* elements, one after the other."""
        return self._of(creation.contiguous(self._live, count))

    def Create_vector(self, count: int, blocklength: int, stride: int) -> Self:
        """*count* blocks of *blocklength* elements, *stride* elements apart."""
        made = creation.vector(self._live, count, blocklength, stride, in_bytes=False)
        return self._of(made)

    def Create_hvector(self, count: int, blocklength: int, stride: int) -> Self:
        """*count* blocks of *blocklength* elements, *stride* bytes apart."""
        made = creation.vector(self._live, count, blocklength, stride, in_bytes=True)
        return self._of(made)

    def Create_indexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Blocks of elements, each so many elements from the origin."""
        made = creation.indexed(self._live, blocklengths, displacements, in_bytes=False)
        return self._of(made)

    def Create_hindexed(self, blocklengths: Sequence[int], displacements: Sequence[int]) -> Self:
        """Blocks of elements, each so many bytes from the origin."""
        made = creation.indexed(self._live, blocklengths, displacements, in_bytes=True)
        return self._of(made)

    def Create_indexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Blocks of *blocklength* elements, each so many elements from the origin."""
        made = creation.indexed_block(self._live, blocklength, displacements, in_bytes=False)
        return self._of(made)

    def Create_hindexed_block(self, blocklength: int, displacements: Sequence[int]) -> Self:
        """Blocks of *blocklength* elements, each so many bytes from the origin."""
        made = creation.indexed_block(self._live, blocklength, displacements, in_bytes=True)
        return self._of(made)

    @classmethod
    def Create_struct(
        cls,
        blocklengths: Sequence[int],
        displacements: Sequence[int],
        datatypes: Sequence[Datatype],
    ) -> Self:
        """Blocks of several types, each so many bytes from the origin.

        The extent is rounded up to a multiple of the alignment that C gives such a struct.
        """
        if len(datatypes) != len(blocklengths):
            raise ValueError(f"{len(blocklengths)} datatypes are needed, not {len(datatypes)}")
        old = [_state_of(one) for one in datatypes]
        return cls._of(creation.struct(blocklengths, displacements, old))

    def Create_subarray(
        self,
        sizes: Sequence[int],
        subsizes: Sequence[int],
        starts: Sequence[int],
        order: int = ORDER_C,
    ) -> Self:
        """A part of an array: *subsizes* of its elements from *starts* on. Extent: the array's."""
        return self._of(creation.subarray(self._live, sizes, subsizes, starts, order))

    def Create_darray(
        self,
        size: int,
        rank: int,
        gsizes: Sequence[int],
        distribs: Sequence[int],
        dargs: Sequence[int],
        psizes: Sequence[int],
        order: int = ORDER_C,
    ) -> Self:
        """What the process *rank* of *size* has of an array that they share.

        Args:
            gsizes: the sizes of the array.
            distribs, dargs: how each dimension is shared, and the sizes of blocks.
            psizes: how many processes share each dimension. Ranks are in C's order.
            order: of the array.
        """
        arguments = (gsizes, distribs, dargs, psizes, order)
        return self._of(creation.darray(self._live, size, rank, *arguments))

    def Create_resized(self, lb: int, extent: int) -> Self:
        """The same data with another lower bound and extent."""
        return self._of(creation.resized(self._live, lb, extent))

    Resized = Create_resized

    @classmethod
    def Get_value_index(cls, value: Datatype, index: Datatype) -> Self:
        """The pair type of two types; DATATYPE_NULL if there is none."""
        return cls._of(named.value_index(_state_of(value), _state_of(index)))

    @classmethod
    def Create_f90_integer(cls, r: int) -> Self:
        """The integer that holds *r* decimal digits: the same type for the same *r*."""
        return cls._of(named.f90_integer(r))

    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Self:
        """The number of *p* decimal digits that reaches 10**r. Either may be UNDEFINED."""
        return cls._of(named.f90_real(p, r))

    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Self:
        """Two numbers of *p* decimal digits that reach 10**r. Either may be UNDEFINED."""
        return cls._of(named.f90_complex(p, r))

    @classmethod
    def Match_size(cls, typeclass: int, size: int) -> Self:
        """Fortran's type of a class (TYPECLASS_...) that has *size* bytes."""
        return cls._of(named.match_size(typeclass, size))


def _state_of(datatype: Any) -> TypeState:
    if not isinstance(datatype, Constructors):
        raise TypeError(f"a Datatype is needed, not {type(datatype).__name__}")
    return datatype._live
