"""Datatypes of NumPy and of MPI, from one to the other: what stands for ``mpi4py.util.dtlib``."""

from __future__ import annotations

from typing import Any

from sfm_kernel.mpi.base import constants as c
from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.state import TypeState, as_list

try:
    from numpy import dtype as _np_dtype
except ImportError:  # programs may take NumPy away, as from mpi4py's module
    _np_dtype = None  # type: ignore[assignment,misc]

__all__ = ["from_numpy_dtype", "to_numpy_dtype"]


def from_numpy_dtype(dtype: Any) -> Datatype:
    """The MPI datatype of a NumPy type; the caller frees it.

    Structs keep their gaps and their item size. Fields that are arrays are contiguous.

    Args:
        dtype: a NumPy type, or what ``numpy.dtype`` makes one of.
    Raises:
        ValueError: it has Python objects or foreign byte order, or MPI has no such type.
        RuntimeError: there is no NumPy.
    """
    if _np_dtype is None:
        raise RuntimeError("NumPy is needed, and cannot be imported: install it")
    dtype = _np_dtype(dtype)
    if dtype.hasobject:
        raise ValueError(f"{dtype} has Python objects, which are no data: send them pickled")
    if not dtype.isnative:
        raise ValueError(f"{dtype} has foreign byte order: convert it (dtype.newbyteorder('='))")
    if dtype.fields:
        fields = [field[:2] for field in dtype.fields.values()]
        parts = [from_numpy_dtype(part) for part, _ in fields]
        struct = Datatype.Create_struct([1] * len(parts), [at for _, at in fields], parts)
        return _freeing(struct.Create_resized(0, dtype.itemsize), struct, *parts)
    if dtype.subdtype:
        base, shape = dtype.subdtype
        old = from_numpy_dtype(base)
        if len(shape) == 1:
            return _freeing(old.Create_contiguous(shape[0]), old)
        return _freeing(old.Create_subarray(shape, shape, [0] * len(shape)), old)
    return Datatype.fromcode(dtype.char).Dup()


def to_numpy_dtype(datatype: Datatype) -> Any:
    """The NumPy type of an MPI datatype. Without NumPy: what ``numpy.dtype`` is to be called with.

    Raises:
        ValueError: NumPy has no such type: the datatype is null, a part of an array, or resized
            and no struct.
    """
    if not datatype:
        raise ValueError("the datatype is null: give another one")
    return _numpy(datatype._live)


def _numpy(state: TypeState) -> Any:
    if state.stands_for is not None:
        return _basic(state)
    old, arguments = state.making.old, state.making.arguments
    match state.making.combiner:
        case c.COMBINER_DUP:
            return _numpy(old[0])
        case c.COMBINER_CONTIGUOUS:
            return _dtype((_numpy(old[0]), (arguments["count"],)))
        case c.COMBINER_SUBARRAY:
            return _array(state)
        case c.COMBINER_STRUCT:
            return _struct(state, state, True)
        case c.COMBINER_RESIZED if old[0].making.combiner == c.COMBINER_STRUCT:
            return _struct(state, old[0], _is_aligned(old[0], state.extent))
        case c.COMBINER_VECTOR | c.COMBINER_HVECTOR:
            step = 1 if state.making.combiner == c.COMBINER_HVECTOR else old[0].extent
            offsets = [n * arguments["stride"] * step for n in range(arguments["count"])]
            return _blocks(state, offsets, itemsize=state.extent)
        case c.COMBINER_INDEXED | c.COMBINER_INDEXED_BLOCK:
            return _blocks(state, as_list(arguments["displacements"] * old[0].extent))
        case c.COMBINER_HINDEXED | c.COMBINER_HINDEXED_BLOCK:
            return _blocks(state, as_list(arguments["displacements"]))
    raise ValueError("this datatype has no counterpart in NumPy: make it of vectors or structs")


def _basic(state: TypeState) -> Any:
    basic = state.stands_for
    assert basic is not None
    if basic.code is not None:
        return _dtype(basic.code)
    if basic.dtype is None or basic.dtype.fields is None:
        raise ValueError(f"NumPy has nothing like {state.name}: send it as bytes")
    codes = ",".join(field[0].char for field in basic.dtype.fields.values())
    return _dtype(codes, align=True)


def _array(state: TypeState) -> Any:
    arguments = {name: as_list(value) for name, value in state.making.arguments.items()}
    sizes = arguments["sizes"]
    if arguments["subsizes"] != sizes:
        raise ValueError("a part of an array has no counterpart in NumPy: use the whole array")
    if arguments["order"] == c.ORDER_FORTRAN:
        sizes = sizes[::-1]
    return _dtype((_numpy(state.making.old[0]), tuple(sizes)))


def _struct(state: TypeState, struct: TypeState, aligned: bool) -> Any:
    """The fields of a struct, with the bounds of *state*."""
    lengths, offsets = (
        as_list(struct.making.arguments[name]) for name in ("blocklengths", "displacements")
    )
    formats = [
        _numpy(part) if length == 1 else (_numpy(part), length)
        for part, length in zip(struct.making.old, lengths, strict=True)
    ]
    return _fields(formats, offsets, aligned and _is_aligned(struct), itemsize=state.extent)


def _blocks(state: TypeState, offsets: list[int], **itemsize: int) -> Any:
    """Blocks of one type, as fields. Those at any place may reach behind the extent."""
    arguments = state.making.arguments
    lengths = as_list(arguments.get("blocklengths", [arguments.get("blocklength")] * len(offsets)))
    inner = _numpy(state.making.old[0])
    formats = [(inner, (length,)) for length in lengths]
    return _fields(formats, offsets, _is_aligned(state), **itemsize)


def _fields(formats: list[Any], offsets: list[int], aligned: bool, **itemsize: int) -> Any:
    names = [f"f{n}" for n in range(len(formats))]
    fields = {"names": names, "formats": formats, "offsets": offsets, "aligned": aligned}
    return _dtype({**fields, **itemsize})


def _is_aligned(state: TypeState, at: int = 0) -> bool:
    """Whether C would align all parts so, if the first element begins at this offset."""
    if state.stands_for is not None:
        return at % state.stands_for.align == 0
    old, arguments = state.making.old, state.making.arguments
    match state.making.combiner:
        case c.COMBINER_STRUCT:
            places = as_list(arguments["displacements"])
            return all(_is_aligned(*one) for one in zip(old, (at + d for d in places), strict=True))
        case c.COMBINER_HVECTOR:
            steps = [arguments["stride"] if arguments["count"] > 1 else 0]
        case c.COMBINER_HINDEXED | c.COMBINER_HINDEXED_BLOCK:
            steps = as_list(arguments["displacements"])
        case c.COMBINER_RESIZED:
            steps = [state.extent]
        case _:
            steps = [0]
    return all(_is_aligned(old[0], at + step) for step in steps)


def _dtype(spec: Any, **options: Any) -> Any:
    if _np_dtype is not None:
        return _np_dtype(spec, **options)
    return (spec, options) if options else spec


def _freeing(made: Datatype, *used: Datatype) -> Datatype:
    for datatype in used:
        datatype.Free()
    return made
