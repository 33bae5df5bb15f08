"""The data of a message: bytes, or an array.

Source: the paper of ``sfm_kernel.speedes``, section 2.3 (``int nbytes, void *buff``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

LARGE = 8 << 10
"""Bytes from which an array is cheaper to send than ``bytes``, since it uses shared memory."""


@dataclass(slots=True, eq=False, repr=False)
class Received:
    """A message that a receive call has returned.

    Attributes:
        data: a ``bytearray``, or an array if one was sent. It belongs to the receiver.
        type: the message's type, 0 to 255; None for a coordinated message.
        src: the node that sent the message.
        nbytes: the length of the data in bytes.
    """

    data: bytearray | Array
    type: int | None
    src: int

    @property
    def nbytes(self) -> int:
        """The length of the data in bytes."""
        return self.data.nbytes if isinstance(self.data, np.ndarray) else len(self.data)

    def __repr__(self) -> str:
        kind = "coordinated" if self.type is None else f"type {self.type}"
        return f"<Received {kind} from node {self.src}, {self.nbytes} bytes>"


class Contents:
    """A user's data, in the form in which they are sent.

    Args:
        data: an object with the buffer protocol (``bytes``, ``bytearray``, ``memoryview``,
            ``array.array``, …), or a NumPy array of other items than Python objects.
    Raises:
        TypeError: the data are neither.
    """

    __slots__ = ("is_array", "payload")

    def __init__(self, data: Any) -> None:
        self.is_array = isinstance(data, np.ndarray | np.generic)
        self.payload: bytes | Array
        if self.is_array:
            array = np.asarray(data)
            if array.dtype.hasobject:
                raise TypeError(
                    "an array of Python objects has no bytes to send. Give it a dtype of numbers, "
                    "or send its contents with sfm.send"
                )
            if isinstance(data, np.ma.MaskedArray):
                raise TypeError("a masked array would lose its mask: send data and mask as arrays")
            self.payload = array
            return
        try:
            view = memoryview(data)
        except TypeError:
            raise TypeError(
                f"data are bytes or a NumPy array, not {data!r:.60}. Encode a text "
                f"(text.encode()), and put numbers into an array (numpy.array, net_array)"
            ) from None
        if view.nbytes >= LARGE and view.c_contiguous:
            self.payload = np.frombuffer(view, np.uint8)
        else:
            self.payload = bytes(view)

    @classmethod
    def received(cls, payload: bytes | Array, is_array: bool) -> Contents:
        """The contents of a message that was received with these attributes."""
        contents = cls.__new__(cls)
        contents.payload, contents.is_array = payload, is_array
        return contents

    @property
    def nbytes(self) -> int:
        """The length in bytes."""
        return self.payload.nbytes if isinstance(self.payload, np.ndarray) else len(self.payload)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """All bytes in order; a copy only if they are not contiguous in memory."""
        if not isinstance(self.payload, np.ndarray):
            return np.frombuffer(self.payload, np.uint8)
        return np.ascontiguousarray(self.payload).reshape(-1).view(np.uint8)

    @property
    def form(self) -> tuple[np.dtype[Any], tuple[int, ...]] | None:
        """Dtype and shape of an array."""
        if self.is_array and isinstance(self.payload, np.ndarray):
            return self.payload.dtype, self.payload.shape
        return None

    def delivered(self) -> bytearray | Array:
        """The data for a receiver that owns the payload."""
        if self.is_array and isinstance(self.payload, np.ndarray):
            return self.payload
        return bytearray(self.payload)

    def copied(self) -> bytearray | Array:
        """The data for a receiver, copied from a payload that the sender keeps."""
        if self.is_array and isinstance(self.payload, np.ndarray):
            return np.array(self.payload, order="C")
        return bytearray(self.payload)


def from_bytes(
    form: tuple[np.dtype[Any], tuple[int, ...]] | None, data: memoryview
) -> bytearray | Array:
    """A copy of the bytes, as a ``bytearray``, or in the form of an array."""
    if form is None:
        return bytearray(data)
    array = np.empty(form[1], form[0])
    array.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
    return array
