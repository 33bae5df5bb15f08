"""Integers and doubles with a fixed byte order, and structures of them.

The paper's NET_INT and NET_DOUBLE remember the kind of machine on which they were last used, and
convert themselves on another kind. A NumPy dtype includes the byte order: ``"<i4"`` means the same
on every machine, and arithmetic converts on access if the machine differs. So a structure is sent
as its bytes, and the receiver converts only the fields that it uses.

Between machines of one kind, native dtypes (``np.intc``, ``np.double``) suffice, as with the
paper's HETEROGENEOUS_DATA_TYPE 0. An array that is sent as an array keeps its dtype with its byte
order, and needs none of these types.

Source: the paper of ``sfm_kernel.speedes``, section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

NET_INT = np.dtype("<i4")
"""NET_INT: 32 bits, the lowest byte first on every machine."""

NET_DOUBLE = np.dtype("<f8")
"""NET_DOUBLE: IEEE 754, 64 bits, the lowest byte first on every machine."""


def net_struct(**fields: npt.DTypeLike | tuple[npt.DTypeLike, int | tuple[int, ...]]) -> Any:
    """The dtype of a structure that has the same bytes on every machine.

    Args:
        fields: the fields in their order, each a dtype, or a dtype and a shape: ``NET_INT``,
            ``(NET_DOUBLE, 3)``. A native byte order becomes lowest byte first.
    Returns:
        A structured dtype without gaps.
    Raises:
        TypeError: a field holds Python objects, which have no bytes to send.
    Example:
        >>> missile = net_struct(id=NET_INT, position=(NET_DOUBLE, 3))
        >>> missile.itemsize
        28
    """
    fixed = []
    for name, field in fields.items():
        kind = np.dtype(field)
        if kind.hasobject:
            raise TypeError(f"field {name!r} holds Python objects, which have no bytes to send")
        fixed.append((name, _fixed(kind)))
    return np.dtype(fixed)


def net_array(values: npt.ArrayLike | bytes | bytearray, dtype: npt.DTypeLike = NET_DOUBLE) -> Any:
    """An array of values that has the same bytes on every machine; or received bytes as an array.

    Args:
        values: numbers (tuples of them for a structure), which are copied; or received bytes, of
            which the array is a view, writable if they are.
        dtype: ``NET_INT``, ``NET_DOUBLE`` or a dtype of ``net_struct``. A native byte order becomes
            lowest byte first.
    Raises:
        ValueError: the length of the bytes is not a multiple of the dtype's size.
    Example:
        >>> received = bytearray(net_array([1, 2], NET_INT))
        >>> received.hex(), int(net_array(received, NET_INT).sum())
        ('0100000002000000', 3)
    """
    fixed = _fixed(np.dtype(dtype))
    if isinstance(values, bytes | bytearray | memoryview):
        view = memoryview(values)
        if view.nbytes % fixed.itemsize:
            raise ValueError(
                f"{view.nbytes} bytes are no whole number of {fixed} with {fixed.itemsize} each: "
                f"read them with the dtype that they were sent with"
            )
        return np.frombuffer(view, fixed)
    return np.array(values, fixed)


def _fixed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with the byte order "lowest byte first" instead of the machine's native one."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((_fixed(base), shape))
    if dtype.names is not None:
        return dtype  # net_struct has fixed the order of its fields
    return dtype.newbyteorder("<") if dtype.isnative else dtype
