"""external32: data as MPI exchanges them between different machines, and stores them in files.

Numbers are big-endian, and have sizes of their own: ``long`` has 4 bytes, ``wchar_t`` 2, and
``long double`` is IEEE's number of 16 bytes.

Source: MPI 5.0, section 14.5.2.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfm_kernel.mpi.datatypes.basics import OPAQUE, Basic, Scalar
from sfm_kernel.mpi.datatypes.signature import Signature

Columns: TypeAlias = NDArray[np.uint8]
"""One row for each repetition, one column for each byte."""


def externalized(packed: Columns, signature: Signature) -> Columns:
    """Packed data in external32. Each row has the data of one signature."""
    return _convert(packed, signature, outward=True)


def internalized(packed: Columns, signature: Signature) -> Columns:
    """The inverse of ``externalized``."""
    return _convert(packed, signature, outward=False)


def _convert(packed: Columns, signature: Signature, outward: bool) -> Columns:
    rows = packed.shape[0]
    made = np.empty((rows, signature.external if outward else signature.nbytes), np.uint8)
    old, new = 0, 0
    for part, times in signature.parts:
        sizes = (part.nbytes, part.external)
        width, new_width = sizes if outward else sizes[::-1]
        source = packed[:, old : old + width * times].reshape(rows * times, width)
        convert: Any = _convert_basic if isinstance(part, Basic) else _convert
        converted = convert(source, part, outward)
        made[:, new : new + new_width * times] = converted.reshape(rows, new_width * times)
        old, new = old + width * times, new + new_width * times
    return made


def _convert_basic(packed: Columns, basic: Basic, outward: bool) -> Columns:
    made = np.empty((packed.shape[0], basic.external if outward else basic.nbytes), np.uint8)
    old, new = 0, 0
    for scalar in basic.scalars:
        source, target = scalar if outward else scalar[::-1]
        numbers = packed[:, old : old + source.itemsize].copy().view(source)[:, 0]
        old += source.itemsize
        converted = _convert_scalar(numbers, scalar, outward)
        made[:, new : new + target.itemsize] = converted.view(np.uint8).reshape(-1, target.itemsize)
        new += target.itemsize
    return made


def _convert_scalar(numbers: NDArray[Any], scalar: Scalar, outward: bool) -> NDArray[Any]:
    native, canonical = scalar
    if canonical != OPAQUE:
        return np.ascontiguousarray(numbers.astype(canonical if outward else native))
    if native == OPAQUE:
        ordered = numbers.view(np.uint8).reshape(-1, OPAQUE.itemsize)
        return np.ascontiguousarray(ordered[:, ::-1] if np.little_endian else ordered)
    return _to_quad(numbers) if outward else _from_quad(numbers, native)


# IEEE's number of 16 bytes has a sign, 15 bits of exponent and 112 of fraction. Intel's of 10 has
# the same sign and exponent, then the integer bit, which IEEE leaves out, and 63 of fraction.

_FRACTION = (1 << 63) - 1
_QUIET = 1 << 62
_EXPONENT = (1 << 15) - 1


def _to_quad(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    raw = numbers.view(np.uint8).reshape(-1, numbers.itemsize)
    fraction = _column(raw[:, :8], "<u8") & _FRACTION
    made = np.empty((len(numbers), 2), ">u8")
    made[:, 0] = _column(raw[:, 8:10], "<u2") << 48 | fraction >> 15
    made[:, 1] = fraction << 49
    return made


def _from_quad(numbers: NDArray[Any], native: np.dtype[Any]) -> NDArray[np.uint8]:
    """Rounded to the nearest; of two, to the even one."""
    high, low = numbers.view(">u8").reshape(-1, 2).astype(np.uint64).T
    power, fraction = high >> 48, (high << 15 | low >> 49) & _FRACTION
    special = power & _EXPONENT == _EXPONENT
    lost, half = low & ((1 << 49) - 1), 1 << 48
    up = (lost > half) | ((lost == half) & (fraction & 1 == 1))
    fraction += up & ~special
    power += fraction >> 63  # it was rounded up to the next power of two
    fraction &= _FRACTION
    fraction[special & ((high << 16 | low) != 0)] |= _QUIET  # not infinite: its bits may be lost
    integer_bit = (power & _EXPONENT != 0).astype(np.uint64) << 63
    made = np.zeros((len(numbers), native.itemsize), np.uint8)
    made[:, :8] = (fraction | integer_bit).astype("<u8").view(np.uint8).reshape(-1, 8)
    made[:, 8:10] = power.astype("<u2").view(np.uint8).reshape(-1, 2)
    return made


def _column(raw: Columns, kind: str) -> NDArray[np.uint64]:
    return np.ascontiguousarray(raw).view(kind)[:, 0].astype(np.uint64)
