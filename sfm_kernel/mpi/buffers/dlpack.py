"""Memory that an object offers by DLPack.

Source: https://dmlc.github.io/dlpack/latest/ (structures of versions 0 and 1).
"""

from __future__ import annotations

import operator
from ctypes import (
    POINTER,
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
    pythonapi,
)
from math import prod
from typing import Any

from sfm_kernel.mpi.buffers.acquired import CPU, Acquired, code_of, is_contiguous
from sfm_kernel.mpi.buffers.memory import memory_at

READ_ONLY = 1
FLOAT, COMPLEX = 2, 5
KINDS = {0: "i", 1: "u", FLOAT: "f", COMPLEX: "c", 6: "b"}
"""NumPy's letter for a code of types."""


class Tensor(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


class Managed(Structure):
    _fields_ = (("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p))


class Versioned(Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("tensor", Tensor),
    )


# Prototypes of our own: those of ``pythonapi`` belong to everybody.
_is_valid = PYFUNCTYPE(c_int, py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))


def acquire(obj: Any, into: bool) -> Acquired | None:
    """The memory that an object offers; None if it does not know DLPack.

    Raises:
        BufferError: it is not contiguous, or to be written and read-only, or wrongly described.
    """
    try:
        export, ask_device = obj.__dlpack__, obj.__dlpack_device__
    except AttributeError:
        return None
    device, number = ask_device()
    device, _ = operator.index(device), operator.index(number)
    # -1: do not order the memory's use after work of a stream; the program has done so.
    where = {} if device == CPU else {"stream": -1}
    try:
        capsule, versioned = export(**where, max_version=(1, 0), copy=False), True
    except TypeError:  # it knows version 0 only
        capsule, versioned = export(**where), False
    tensor, readonly = _read(capsule, versioned)
    shape = _sizes(tensor, "shape")
    strides = _sizes(tensor, "strides") if tensor.strides else None
    if not is_contiguous(shape, strides, 1):
        raise BufferError("dlpack: the buffer is not contiguous: make it so, or send a copy")
    if readonly and into:
        raise BufferError("dlpack: the buffer is read-only: receive into one that is not")
    nbytes = prod(shape) * ((tensor.bits * tensor.lanes + 7) // 8)
    address = (tensor.data or 0) + tensor.byte_offset
    memory = memory_at(address, nbytes, readonly, owner=capsule)
    return Acquired(memory, _code(tensor), device, capsule)


def _read(capsule: Any, versioned: bool) -> tuple[Tensor, bool]:
    """What a capsule describes, and whether it is read-only."""
    name = b"dltensor_versioned" if versioned else b"dltensor"
    if not _is_valid(capsule, name):
        raise BufferError(f"dlpack: {capsule!r} is no capsule of a tensor that is still unused")
    pointer = _pointer(capsule, name)
    if not versioned:
        return Managed.from_address(pointer).tensor, False
    managed = Versioned.from_address(pointer)
    if managed.major < 1:
        raise BufferError(f"dlpack: a capsule of version 1 was expected, not {managed.major}")
    return managed.tensor, bool(managed.flags & READ_ONLY)


def _sizes(tensor: Tensor, name: str) -> tuple[int, ...]:
    if tensor.ndim < 0:
        raise BufferError(f"dlpack: {tensor.ndim} dimensions")
    if tensor.ndim == 0:
        return ()
    values = getattr(tensor, name)
    if not values:
        raise BufferError(f"dlpack: the {name} is missing")
    sizes = tuple(values[: tensor.ndim])
    if min(sizes) < 0:
        raise BufferError(f"dlpack: {name} {sizes} has a negative item")
    return sizes


def _code(tensor: Tensor) -> str:
    """The type code of the items; bytes where there is none."""
    kind, bits = tensor.code, tensor.bits
    if tensor.lanes == 2 and kind == FLOAT:
        kind, bits = COMPLEX, 2 * bits
    elif tensor.lanes != 1:
        return "B"
    return code_of(KINDS.get(kind, ""), bits // 8 if bits % 8 == 0 else 0)
