"""Names for the types of arguments, for annotations in programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ParamSpec, Protocol, SupportsIndex, TypeAlias, TypeVar

from sfm_kernel.mpi.MPI import BottomType, Datatype, InPlaceType, Intercomm, Intracomm

__all__ = [
    "Aint",
    "Bottom",
    "BufSpec",
    "BufSpecB",
    "BufSpecV",
    "BufSpecW",
    "Buffer",
    "Count",
    "Displ",
    "InPlace",
    "Offset",
    "SupportsBuffer",
    "SupportsCAI",
    "SupportsDLPack",
    "TargetSpec",
    "TypeSpec",
]


class SupportsBuffer(Protocol):
    """What ``memoryview`` takes."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class SupportsDLPack(Protocol):
    """An array of another library, which it lends as a DLPack capsule."""

    def __dlpack__(self, /, *, stream: int | Any | None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class SupportsCAI(Protocol):
    """An array that describes its memory as CUDA's libraries do."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


Buffer: TypeAlias = SupportsBuffer | SupportsDLPack | SupportsCAI
Bottom: TypeAlias = BottomType | None
InPlace: TypeAlias = InPlaceType | None

Aint: TypeAlias = SupportsIndex
Count: TypeAlias = SupportsIndex
Displ: TypeAlias = SupportsIndex
Offset: TypeAlias = SupportsIndex

TypeSpec: TypeAlias = Datatype | str
"""A datatype, or the letter that NumPy and ``struct`` have for it."""

_Counts: TypeAlias = Sequence[Count]
_Displs: TypeAlias = Sequence[Displ]
_Types: TypeAlias = Sequence[Datatype]

BufSpec: TypeAlias = (
    Buffer
    | tuple[Buffer, Count]
    | tuple[Buffer, TypeSpec]
    | tuple[Buffer, Count, TypeSpec]
    | tuple[Bottom, Count, Datatype]
    | list[Any]
    | None
)
"""A message: a buffer, alone or with how many elements of which type."""

BufSpecB: TypeAlias = (
    Buffer
    | tuple[Buffer, Count]
    | tuple[Buffer, TypeSpec]
    | tuple[Buffer, Count, TypeSpec]
    | list[Any]
)
"""Blocks of one size, one for each rank."""

BufSpecV: TypeAlias = (
    Buffer
    | tuple[Buffer, _Counts]
    | tuple[Buffer, tuple[_Counts, _Displs]]
    | tuple[Buffer, TypeSpec]
    | tuple[Buffer, _Counts, TypeSpec]
    | tuple[Buffer, tuple[_Counts, _Displs], TypeSpec]
    | tuple[Buffer, _Counts, _Displs, TypeSpec]
    | tuple[Bottom, tuple[_Counts, _Displs], Datatype]
    | tuple[Bottom, _Counts, _Displs, Datatype]
    | list[Any]
)
"""Blocks of several sizes, one for each rank, and where they lie."""

BufSpecW: TypeAlias = (
    tuple[Buffer, _Types]
    | tuple[Buffer, tuple[_Counts, _Displs], _Types]
    | tuple[Buffer, _Counts, _Displs, _Types]
    | tuple[Bottom, tuple[_Counts, _Displs], _Types]
    | tuple[Bottom, _Counts, _Displs, _Types]
    | list[Any]
)
"""Blocks of several sizes and types, one for each rank."""

TargetSpec: TypeAlias = (
    Displ
    | tuple[()]
    | tuple[Displ]
    | tuple[Displ, Count]
    | tuple[Displ, Count, TypeSpec]
    | list[Any]
)
"""Where in another process's window."""

CommT = TypeVar("CommT", Intracomm, Intercomm)
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
