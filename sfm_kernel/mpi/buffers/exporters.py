"""The memory of any object that offers it: buffers, arrays, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.mpi.buffers import cuda, dlpack
from sfm_kernel.mpi.buffers.acquired import CPU, Acquired
from sfm_kernel.mpi.buffers.exporter import Exporter
from sfm_kernel.mpi.buffers.memory import Bytes, address_of, bytes_of
from sfm_kernel.mpi.buffers.special import Constant


def acquire(obj: Any, into: bool, infer: bool = False) -> Acquired:
    """The memory of an object. The object cannot be resized while it is held.

    Args:
        into: it is to be written.
        infer: the type of the items matters; else ``format`` may be that of bytes.
    Raises:
        TypeError: the object has none to offer.
        BufferError: it is not one contiguous piece, or read-only and to be written.
    """
    if isinstance(obj, np.ndarray):
        return _of_array(obj, into, infer)
    try:
        view = memoryview(obj)
    except (TypeError, ValueError, BufferError) as failure:
        found = dlpack.acquire(obj, into) or cuda.acquire(obj, into, infer) or _array(obj, into)
        if found is not None:
            return found
        if isinstance(failure, TypeError):
            raise TypeError(
                f"a buffer is needed (an array, bytes, a tensor, …), not a {type(obj).__name__}; "
                "objects are sent by the methods in lower case"
            ) from None
        raise
    return _of_view(view, obj, into)


def address(location: Any) -> int:
    """Where the memory of an object begins; 0 for None; of BOTTOM and its like, their value."""
    if location is None or isinstance(location, Constant):
        return int(location or 0)
    return address_of(acquire(location, into=False).memory)


def _array(obj: Any, into: bool) -> Acquired | None:
    """The memory of an object that only NumPy understands."""
    described = getattr(obj, "__array_interface__", None)
    if not isinstance(described, dict) or not isinstance(described.get("data"), tuple):
        return None  # any other would be copied
    return _of_view(np.asarray(obj).data, obj, into)


def _of_array(array: NDArray[Any], into: bool, infer: bool) -> Acquired:
    _check(array, not array.flags.writeable and into, array.flags.forc)
    plain = array.view(np.ndarray)  # of a matrix, say, ravel() would be no row of bytes
    code = "B"
    if infer:
        code = plain.dtype.char if plain.dtype.kind in "mM" else plain.data.format
    device = array._device if isinstance(array, Exporter) else CPU
    return Acquired(bytes_of(plain), code, device, array)


def _of_view(view: memoryview, obj: Any, into: bool) -> Acquired:
    _check(obj, view.readonly and into, view.contiguous)
    memory: Bytes
    if view.c_contiguous:
        memory = np.frombuffer(view, np.uint8)
    else:
        memory = bytes_of(np.asarray(view))
    return Acquired(memory, view.format, CPU, obj)


def _check(obj: Any, is_fixed: bool, is_contiguous: bool) -> None:
    kind = type(obj).__name__
    if is_fixed:
        raise BufferError(
            f"a {kind} that is read-only cannot be received into: give a writable one"
        )
    if not is_contiguous:
        raise BufferError(
            f"the {kind} is not contiguous: send a copy, or its whole array with a datatype that "
            "picks the items"
        )
