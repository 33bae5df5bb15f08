"""Datatype: what elements of a message are, and where they lie in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sfm_kernel.mpi.base import constants as c
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.base.keyvals import HasAttributes
from sfm_kernel.mpi.datatypes.constructors import Constructors
from sfm_kernel.mpi.datatypes.packing import Packing
from sfm_kernel.mpi.datatypes.pieces import Bytes
from sfm_kernel.mpi.datatypes.state import TypeState, as_list

COMBINERS = {
    value: name.removeprefix("COMBINER_")
    for name, value in vars(c).items()
    if name.startswith("COMBINER_")
}


class Datatype(Constructors, Packing, HasAttributes, Handle[TypeState]):
    """What elements are: basic types, each at its displacement from the element's origin.

    ``Create_...`` make new types of others; ``Commit`` makes them fit for communication. Elements
    are ``extent`` bytes apart; packed, in messages, they have ``size`` bytes, in the order of the
    basic types.

    Every call on DATATYPE_NULL raises ERR_TYPE, unless it says otherwise. What was freed goes on
    being a part of types that were made of it.
    """

    __slots__ = ()
    _null_error = c.ERR_TYPE

    def __repr__(self) -> str:
        state = self._state
        if state is None:
            return "<Datatype DATATYPE_NULL>"
        what = state.name or f"{COMBINERS[state.making.combiner]} of {state.size} bytes"
        return f"<Datatype {what}>"

    # ---- sizes, in bytes ----

    def Get_size(self) -> int:
        """How many bytes of data an element has."""
        return self._live.size

    def Get_extent(self) -> tuple[int, int]:
        """The lower bound and the extent: how far the next element is."""
        return self._live.lb, self._live.extent

    def Get_true_extent(self) -> tuple[int, int]:
        """Where the data begin, and how many bytes on they end."""
        return self._live.true_lb, self._live.true_extent

    @property
    def size(self) -> int:
        """How many bytes of data an element has."""
        return self._live.size

    @property
    def extent(self) -> int:
        """From one element to the next."""
        return self._live.extent

    @property
    def lb(self) -> int:
        """The lower bound."""
        return self._live.lb

    @property
    def ub(self) -> int:
        """The upper bound."""
        return self._live.lb + self._live.extent

    @property
    def true_extent(self) -> int:
        """From where the data begin to where they end."""
        return self._live.true_extent

    @property
    def true_lb(self) -> int:
        """Where the data begin."""
        return self._live.true_lb

    @property
    def true_ub(self) -> int:
        """Where the data end."""
        return self._live.true_lb + self._live.true_extent

    # ---- use ----

    def Commit(self) -> Self:
        """Make the type fit for communication. Returns itself."""
        self._live.committed = True
        return self

    def Free(self) -> None:
        """Give the type up, and make the handle null. Types that were made of it stay.

        Raises:
            Exception: ERR_TYPE: it is null, or one of MPI's own.
        """
        state = self._live
        if state.is_named:
            fail(c.ERR_TYPE, f"{state.name} belongs to MPI: only types that were made can be freed")
        if not state.is_predefined:
            state.references -= 1
            if state.references == 0:
                self._delete_attributes()
        self._state = None

    # ---- how it was made ----

    def Get_envelope(self) -> tuple[int, int, int, int, int]:
        """How many integers, addresses, counts and datatypes it was made of; and the combiner."""
        making = self._live.making
        integers, counts = making.integers_and_counts()
        return len(integers), 0, len(counts), len(making.old), making.combiner

    def Get_contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """The integers, addresses, counts and datatypes it was made of.

        The datatypes are to be freed, except predefined ones.

        Raises:
            Exception: ERR_TYPE: it is null, or one of MPI's own.
        """
        state = self._live
        if state.is_named:
            fail(c.ERR_TYPE, f"{state.name} was not made of others: look at its envelope first")
        integers, counts = state.making.integers_and_counts()
        return integers, [], counts, self._parts(keep=True)

    def decode(self) -> tuple[Datatype, str, dict[str, Any]]:
        """The datatype that it was made of, the name of the combiner, and the other arguments.

        With ``"VECTOR"`` and ``params``, ``datatype.Create_vector(**params)`` makes it again. Of a
        struct of several types, the datatype is null, and they are in ``params``.
        """
        return self._decoded(keep=True)

    @property
    def envelope(self) -> tuple[int, int, int, int, int]:
        """How many integers, addresses, counts and datatypes it was made of; and the combiner."""
        return self.Get_envelope()

    @property
    def contents(self) -> tuple[list[int], list[int], list[int], list[Datatype]]:
        """The integers, addresses, counts and datatypes it was made of."""
        return self.Get_contents()

    @property
    def combiner(self) -> int:
        """How it was made: COMBINER_..."""
        return self._live.making.combiner

    @property
    def is_named(self) -> bool:
        """Whether it is one of MPI's own."""
        return self._live.is_named

    @property
    def is_predefined(self) -> bool:
        """Whether it is null, one of MPI's own, or one that is asked for by precision."""
        return self._state is None or self._state.is_predefined

    def _parts(self, *, keep: bool) -> list[Datatype]:
        """The datatypes it was made of; with *keep*, the caller frees them."""
        parts = self._live.making.old
        for part in parts if keep else ():
            part.references += 1
        return [Datatype._of(part) for part in parts]

    def _decoded(self, *, keep: bool) -> tuple[Datatype, str, dict[str, Any]]:
        state = self._live
        combiner = state.making.combiner
        if combiner == c.COMBINER_NAMED:
            return self, COMBINERS[combiner], {}
        parts = self._parts(keep=keep)
        params = {name: as_list(value) for name, value in state.making.arguments.items()}
        if combiner == c.COMBINER_STRUCT:
            params["datatypes"] = parts
        old = parts[0] if len(parts) == 1 else Datatype()
        return old, COMBINERS[combiner], params

    def _reduce_created(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _datatype_create, (*self._decoded(keep=False), True)

    # ---- names and codes ----

    def Get_name(self) -> str:
        """The name; empty if it has none. Of null too."""
        return "MPI_DATATYPE_NULL" if self._state is None else self._state.name

    def Set_name(self, name: str) -> None:
        """Name the datatype; what is longer than MAX_OBJECT_NAME - 1 bytes is cut off."""
        state = self._live
        state.name = name.encode()[: c.MAX_OBJECT_NAME - 1].decode(errors="ignore")

    name = property(Get_name, Set_name, doc="The name.")

    def tocode(self) -> str:
        """The code of a predefined datatype, as in PEP 3118 or NumPy.

        Raises:
            ValueError: it has none.
        """
        code = _typecode(self)
        if code is None:
            raise ValueError(f"{self!r} has no code: only types of one number or character do")
        return code

    @classmethod
    def fromcode(cls, code: str) -> Datatype:
        """The predefined datatype of a code.

        Raises:
            ValueError: there is none.
        """
        from sfm_kernel.mpi.datatypes.predefined import by_code  # they are datatypes

        try:
            return by_code(code)
        except KeyError as error:
            raise ValueError(error.args[0]) from None

    @property
    def typechar(self) -> str:
        """NumPy's character; ``V`` if it has none; empty if it is null."""
        basic = None if self._state is None else self._state.stands_for
        return "" if self._state is None else "V" if basic is None else basic.char

    @property
    def typestr(self) -> str:
        """NumPy's type string, without byte order; empty if it is null."""
        state = self._state
        if state is None:
            return ""
        return f"V{max(0, state.extent)}" if state.stands_for is None else state.stands_for.string

    # ---- for the calls that move data ----

    def _pack(self, memory: Bytes, origin: int, count: int, start: int = 0) -> Bytes:
        """The data of *count* elements from element *start* on; a view if it is contiguous.

        Args:
            origin: of element 0, in bytes of *memory*.
        """
        state = self._live
        return state.pack(memory, origin, start * state.size, (start + count) * state.size)

    def _unpack(self, data: Bytes, memory: Bytes, origin: int, start: int = 0) -> None:
        """The inverse of ``_pack``. The data may end inside an element."""
        state = self._live
        state.unpack(memory, origin, data, start * state.size)

    def _elements_in(self, nbytes: int) -> int:
        """How many basic elements so many bytes of data hold; UNDEFINED if one is cut."""
        found = self._live.signature.elements_in(nbytes)
        return c.UNDEFINED if found is None else found

    def _bytes_of_elements(self, count: int) -> int:
        """How many bytes of data so many basic elements have."""
        return self._live.signature.nbytes_of(count)


def _typecode(datatype: Datatype) -> str | None:
    """The code of a datatype, as in PEP 3118 or NumPy; None if it has none."""
    basic = None if datatype._state is None else datatype._state.stands_for
    return None if basic is None else basic.code


def _typealign(datatype: Datatype) -> int | None:
    """Of which number of bytes the addresses of a basic type are multiples; None of others."""
    basic = None if datatype._state is None else datatype._state.stands_for
    return None if basic is None else basic.align


def _datatype_create(
    datatype: Datatype, combiner: str, params: dict[str, Any], free: bool = False
) -> Datatype:
    """A committed datatype, from what ``decode`` has given.

    Args:
        free: whether to free the datatypes that it is made of.
    """
    make: Callable[..., Datatype] = getattr(datatype, f"Create_{combiner.lower()}")
    parts: list[Datatype] = params.get("datatypes", [datatype])
    try:
        return make(**params).Commit()
    finally:
        for part in parts if free else ():
            part.free()


def _datatype_decode(
    datatype: Datatype, mark: bool = False
) -> tuple[Datatype, str, dict[str, Any]]:
    """The same as ``datatype.decode()``; with *mark*, the datatypes are not to be freed."""
    return datatype._decoded(keep=not mark)
