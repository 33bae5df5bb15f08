"""Memory that an object offers by the CUDA array interface.

Source: https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

from __future__ import annotations

import sys
import warnings
from math import prod
from typing import Any

from sfm_kernel.mpi.buffers.acquired import CUDA, Acquired, code_of, is_contiguous
from sfm_kernel.mpi.buffers.memory import memory_at

NATIVE = "<" if sys.byteorder == "little" else ">"


def acquire(obj: Any, into: bool, infer: bool) -> Acquired | None:
    """The memory that an object offers; None if it does not know the interface.

    Args:
        infer: the type of the items matters.
    Raises:
        BufferError: it cannot be used as one piece of memory, or is read-only and to be written.
        KeyError, TypeError, ValueError: the description is not what the interface asks for.
    """
    try:
        described = obj.__cuda_array_interface__
    except AttributeError:
        return None
    address, readonly = _typed(described, "data", tuple)
    typestr = _typed(described, "typestr", str)
    shape = _typed(described, "shape", tuple)
    strides = _typed(described, "strides", tuple, optional=True)
    descr = _typed(described, "descr", list, optional=True)
    count, itemsize = prod(shape), int(typestr[2:])
    if infer and typestr[0] not in ("|", NATIVE):
        raise _refused(f"items of type {typestr!r} are not in this machine's byte order")
    if described.get("mask") is not None:
        raise _refused("masked arrays cannot be sent: send the data and the mask")
    if count < 0:
        raise _refused(f"shape {shape} has a negative size")
    if not is_contiguous(shape, strides, itemsize):
        raise _refused(f"strides {strides} of shape {shape} are not contiguous: send a copy")
    if readonly and into:
        raise _refused("the buffer is read-only: receive into one that is not")
    if descr is not None and descr != [("", typestr)]:
        text = f"__cuda_array_interface__: {descr} is ignored: the items are sent as {typestr!r}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    memory = memory_at(address or 0, count * itemsize, bool(readonly), owner=obj)
    return Acquired(memory, code_of(typestr[1:2], itemsize), CUDA, obj)


def _typed(described: Any, key: str, kind: type, optional: bool = False) -> Any:
    value = described.get(key) if optional else described[key]
    if isinstance(value, kind) or (optional and value is None):
        return value
    raise TypeError(f"__cuda_array_interface__: {key!r} is a {kind.__name__}, not {value!r}")


def _refused(why: str) -> BufferError:
    return BufferError(f"__cuda_array_interface__: {why}")
