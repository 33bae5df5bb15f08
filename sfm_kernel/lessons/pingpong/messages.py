"""The messages of benchmarks: bytes and arrays of many sizes, and a small one of three values."""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import Any

Attributes = dict[str, Any]

SIZES = {
    "8 B": 8,
    "128 B": 128,
    "1 kB": 1 << 10,
    "16 kB": 16 << 10,
    "64 kB": 64 << 10,
    "1 MB": 1 << 20,
    "16 MB": 16 << 20,
    "64 MB": 64 << 20,
}
"""Sizes of ``data`` in bytes. As in the paper, a kB has 1024 bytes."""

THREE = "3 attributes"
"""A small message as programs send them: a text, a number, 128 bytes."""

MESSAGES = {
    THREE: 128,
    **{f"bytes {size}": nbytes for size, nbytes in SIZES.items()},
    **{f"array {size}": nbytes for size, nbytes in SIZES.items()},
}
"""Name of a message -> bytes of its ``data``."""

TABLE_2 = ("bytes 128 B", "bytes 16 kB", "bytes 64 kB")
"""The messages of the paper's Table 2: character arrays."""


@lru_cache(maxsize=2)
def attributes_of(name: str) -> Attributes:
    """The attributes of a message. They are cached: a caller must not change them."""
    nbytes = MESSAGES[name]
    if name == THREE:
        return {"tag": "result", "step": 7, "data": bytes(nbytes)}
    if name.startswith("bytes"):
        return {"data": bytes(nbytes)}
    import numpy as np

    return {"data": np.arange(nbytes // 8, dtype=np.float64)}


def kind_of(name: str) -> str:
    """The kind of a message: "attributes", "bytes" or "array"."""
    return "attributes" if name == THREE else name.partition(" ")[0]


def same(opened: Any, name: str, *, writable: bool = True) -> bool:
    """Whether these values are those of the message, and an array is writable if required.

    ``opened`` is the value of a message's only attribute, or a tuple of its values in order.
    """
    attributes = attributes_of(name)
    if not name.startswith("array"):
        return bool(opened == itemgetter(*attributes)(attributes))
    return bool((opened == attributes["data"]).all()) and (opened.flags.writeable or not writable)


def size_of(nbytes: int) -> str:
    """Bytes as people say them: "8 B", "1 MB"."""
    return {size: name for name, size in SIZES.items()}.get(nbytes, f"{nbytes:,} B")
