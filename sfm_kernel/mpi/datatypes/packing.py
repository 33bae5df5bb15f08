"""Pack and Unpack: elements to contiguous bytes and back, in this machine's form or external32."""

from __future__ import annotations

from typing import Any

from sfm_kernel.mpi.base.constants import (
    ERR_ARG,
    ERR_TRUNCATE,
    ERR_TYPE,
    ERR_UNSUPPORTED_DATAREP,
)
from sfm_kernel.mpi.base.errors import fail
from sfm_kernel.mpi.base.handle import Handle
from sfm_kernel.mpi.datatypes.arguments import count as checked_count
from sfm_kernel.mpi.datatypes.arguments import whole
from sfm_kernel.mpi.datatypes.external32 import externalized, internalized
from sfm_kernel.mpi.datatypes.pieces import Bytes
from sfm_kernel.mpi.datatypes.state import TypeState

_NONE: Any = object()


class Packing(Handle[TypeState]):
    """Pack and unpack. Buffers are any memory; how many elements it holds, their extent says.

    Positions are bytes of the packed data. Raises, every call:
        Exception: ERR_TYPE: the datatype is null, or not committed. ERR_COMM: the communicator is
            null. ERR_TRUNCATE: the packed data do not fit between the position and the end of
            their buffer. ERR_BUFFER: elements reach out of theirs.
    """

    __slots__ = ()

    def Pack(self, inbuf: Any, outbuf: Any, position: int, comm: Any) -> int:
        """Pack the elements of *inbuf* to *outbuf*. Returns the position behind them."""
        state = self._for_packing(comm)
        return _pack(state, inbuf, outbuf, position, canonical=False)

    def Unpack(self, inbuf: Any, position: int, outbuf: Any, comm: Any) -> int:
        """Fill *outbuf* with elements that were packed to *inbuf*. Returns the position behind."""
        state = self._for_packing(comm)
        return _unpack(state, inbuf, position, outbuf, canonical=False)

    def Pack_size(self, count: int, comm: Any) -> int:
        """How many bytes *count* elements take when they are packed."""
        state = self._live
        _check_communicator(comm)
        return checked_count(count) * state.size

    def Pack_external(self, datarep: str, inbuf: Any, outbuf: Any, position: int) -> int:
        """As ``Pack``, in the representation that all machines share: ``"external32"``.

        Raises:
            Exception: ERR_UNSUPPORTED_DATAREP: it is another one.
        """
        state = self._for_packing()
        _check_representation(datarep)
        return _pack(state, inbuf, outbuf, position, canonical=True)

    def Unpack_external(self, datarep: str, inbuf: Any, position: int, outbuf: Any) -> int:
        """The inverse of ``Pack_external``."""
        state = self._for_packing()
        _check_representation(datarep)
        return _unpack(state, inbuf, position, outbuf, canonical=True)

    def Pack_external_size(self, datarep: str, count: int) -> int:
        """How many bytes *count* elements take in ``"external32"``."""
        state = self._live
        _check_representation(datarep)
        return checked_count(count) * state.signature.external

    def _for_packing(self, comm: Any = _NONE) -> TypeState:
        state = self._live
        if not state.committed:
            fail(ERR_TYPE, f"{self!r} is not committed: call its Commit() first")
        if comm is not _NONE:
            _check_communicator(comm)
        return state


def _pack(state: TypeState, inbuf: Any, outbuf: Any, position: int, *, canonical: bool) -> int:
    """Pack all elements of *inbuf* to *outbuf*, from byte *position* on. Returns where they end."""
    source, target = _memory(inbuf, into=False), _memory(outbuf, into=True)
    size = state.signature.external if canonical else state.size
    count = _elements(state, source)
    end = _end(target, position, count * size)
    packed = state.pack(source, 0, 0, count * state.size)
    if canonical:
        packed = externalized(packed.reshape(count, state.size), state.signature).reshape(-1)
    target[position:end] = packed
    return end


def _unpack(state: TypeState, inbuf: Any, position: int, outbuf: Any, *, canonical: bool) -> int:
    """The inverse of ``_pack``: it fills *outbuf*. Returns where in *inbuf* the data ended."""
    source, target = _memory(inbuf, into=False), _memory(outbuf, into=True)
    size = state.signature.external if canonical else state.size
    count = _elements(state, target)
    end = _end(source, position, count * size)
    packed = source[position:end]
    if canonical:
        packed = internalized(packed.reshape(count, size), state.signature).reshape(-1)
    state.unpack(target, 0, packed, 0)
    return end


def _check_representation(name: Any) -> None:
    """Refuse all but external32."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a data representation is a str, not {name!r}")
    if name != "external32":
        fail(ERR_UNSUPPORTED_DATAREP, f"{name!r} is not offered: use 'external32'")


def _check_communicator(comm: Any) -> None:
    """Refuse what is no communicator. Packed data do not depend on which one it is."""
    if not isinstance(comm, Handle) or comm._kind.__name__ != "Comm":
        raise TypeError(f"a communicator is needed, not {type(comm).__name__}")
    _ = comm._live


def _memory(buf: Any, into: bool) -> Bytes:
    from sfm_kernel.mpi.buffers.exporters import acquire  # it imports datatypes

    return acquire(buf, into).within_reach()


def _elements(state: TypeState, memory: Bytes) -> int:
    """How many elements the memory holds, as its length and their extent say."""
    return memory.size // state.extent if state.extent > 0 else 0


def _end(memory: Bytes, position: int, nbytes: int) -> int:
    start = whole(position)
    if start < 0:
        fail(ERR_ARG, f"the position is {start}: it must not be negative")
    if start + nbytes > memory.size:
        fail(
            ERR_TRUNCATE,
            f"the packed data take bytes {start} to {start + nbytes}, and the buffer for them has "
            f"{memory.size}: make it larger (Pack_size says how large), or the other one smaller",
        )
    return start + nbytes
