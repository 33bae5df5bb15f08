"""Integers and doubles that keep their byte order, and structures of them.

The paper's NET_INT and NET_DOUBLE remember on which kind of machine they were last used, and turn
themselves round when used on another. NumPy's dtypes have a byte order of their own: what is
``"<i4"`` here is ``"<i4"`` everywhere, and arithmetic converts on access where the machine differs.
So a structure is sent as its bytes and read at the other end, and only what is used is converted.

Between machines of one kind, native dtypes (``np.intc``, ``np.double``) do the same job, as the
paper's HETEROGENEOUS_DATA_TYPE 0 says. An array that is sent as an array takes its dtype along,
byte order and all, and needs none of this.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 4.
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
    """The dtype of a structure that is the same bytes on every machine.

    Args:
        fields: in their order, each a dtype, or a dtype and a shape: ``NET_INT``,
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
    parts = []
    for name, field in fields.items():
        kind = np.dtype(field)
        if kind.hasobject:
            raise TypeError(f"field {name!r} holds Python objects, which have no bytes to send")
        parts.append((name, _fixed(kind)))
    return np.dtype(parts)


def net_array(values: npt.ArrayLike | bytes | bytearray, dtype: npt.DTypeLike = NET_DOUBLE) -> Any:
    """Values in the form that is the same on every machine; or received bytes as such values.

    Args:
        values: numbers (tuples of them for a structure), which are copied; or bytes that were
            received, which are not: the array is a view of them, writable where they are.
        dtype: ``NET_INT``, ``NET_DOUBLE`` or a structure of ``net_struct``. A native byte order
            becomes lowest byte first.
    Raises:
        ValueError: the bytes are no whole number of values.
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
    """The dtype with "lowest byte first" where it had the machine's own order."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((_fixed(base), shape))
    if dtype.names is not None:
        return dtype  # its fields were told their order when it was made
    return dtype.newbyteorder("<") if dtype.isnative else dtype
