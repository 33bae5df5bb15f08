"""Packets: the messages of SFM, as bytes. See docs/wire-format.md."""

from __future__ import annotations

import struct
from array import array
from typing import Any

PACKET = struct.Struct("<3sBBBHIIQQ")
ENTRY = struct.Struct("<HBxI")
NONE, FALSE, TRUE, INT, BIG_INT, FLOAT, TEXT, BYTES, LONG_TEXT, LONG_BYTES, ARRAY = (
    *range(8),
    9,
    10,
    12,
)
FORMATS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
FORMATS |= {"f4": "f", "f8": "d", "b1": "?"}
"""struct's letter of numbers, by NumPy's kind and their size."""
KINDS = {form: name for name, form in FORMATS.items()} | {"l": "i8", "L": "u8"}


def encode(attributes: dict[str, Any]) -> bytes:
    """The packet with these attributes; a memoryview, or whatever has one, is an array.

    Raises TypeError for a value that would have to be pickled.
    """
    table, buffers = bytearray(), list[bytes]()
    for name, value in attributes.items():
        kind, body = INT, b""
        if value is None or isinstance(value, bool):
            kind = NONE if value is None else TRUE if value else FALSE
        elif isinstance(value, int):
            kind = INT if -(1 << 63) <= value < 1 << 63 else BIG_INT
            size = 8 if kind == INT else value.bit_length() // 8 + 1
            body = value.to_bytes(size, "little", signed=True)
        elif isinstance(value, float):
            kind, body = FLOAT, struct.pack("<d", value)
        elif isinstance(value, (str, bytes)):
            is_text = isinstance(value, str)
            kind, body = (TEXT, value.encode()) if isinstance(value, str) else (BYTES, value)
            if len(body) > 1024:
                buffers.append(body)
                kind = LONG_TEXT if is_text else LONG_BYTES
                body = (len(buffers) - 1).to_bytes(4, "little")
        else:
            try:
                view = memoryview(value)
                about = KINDS[view.format]
            except (TypeError, KeyError):
                raise TypeError(f"{name} = {value!r}: neither a plain value nor numbers") from None
            buffers.append(view.tobytes())
            letter, size = about[0].encode(), view.itemsize
            front = struct.pack("<IcBcB", len(buffers) - 1, letter, size, b"C", view.ndim)
            kind, body = ARRAY, front + struct.pack(f"<{view.ndim}Q", *view.shape or ())
        table += ENTRY.pack(len(name.encode()), kind, len(body)) + name.encode() + body
    end = PACKET.size + len(table) + 16 * len(buffers)
    descriptors, tail = b"", bytearray()
    for buffer in buffers:
        tail += bytes(-(end + len(tail)) % 64)
        descriptors += struct.pack("<QQ", end + len(tail), len(buffer))
        tail += buffer
    numbers = (2, 0, len(attributes), len(table), len(buffers), end + len(tail), 0)
    return PACKET.pack(b"SFP", 0xB5, *numbers) + table + descriptors + tail


def decode(packet: bytes) -> tuple[dict[str, Any], int]:
    """The attributes of a packet, and its context; an array becomes a memoryview (an
    empty one, of one dimension).

    Raises ValueError for what is no packet, or has a pickled value.
    """
    magic, high, version, flags, count, length, buffers, _, context = PACKET.unpack_from(packet)
    if (magic, high, version, flags) != (b"SFP", 0xB5, 2, 0):
        raise ValueError("no packet of attributes")
    at, values = PACKET.size, dict[str, Any]()
    places = [struct.unpack_from("<QQ", packet, at + length + 16 * n) for n in range(buffers)]
    parts = [packet[begin : begin + size] for begin, size in places]
    for _ in range(count):
        name_size, kind, size = ENTRY.unpack_from(packet, at)
        begin = at + ENTRY.size + name_size
        name, body = packet[at + ENTRY.size : begin].decode(), packet[begin : begin + size]
        at = begin + size
        values[name] = _value(name, kind, body, parts)
    return values, context


def _value(name: str, kind: int, body: bytes, parts: list[bytes]) -> Any:
    if kind in (NONE, FALSE, TRUE):
        return (None, False, True)[kind]
    if kind in (INT, BIG_INT):
        return int.from_bytes(body, "little", signed=True)
    if kind == FLOAT:
        return struct.unpack("<d", body)[0]
    if kind in (TEXT, BYTES):
        return body.decode() if kind == TEXT else body
    if kind in (LONG_TEXT, LONG_BYTES):
        long = parts[int.from_bytes(body, "little")]
        return long.decode() if kind == LONG_TEXT else long
    if kind == ARRAY:
        index, letter, size, order, dimensions = struct.unpack_from("<IcBcB", body)
        shape = struct.unpack_from(f"<{dimensions}Q", body, 8)
        form = FORMATS.get(f"{letter.decode()}{size}")
        if form is None or (order != b"C" and dimensions > 1):
            raise ValueError(f"{name}: an array that this program has no use for")
        if not parts[index]:  # memoryviews have no extents of 0
            return memoryview(array(form.replace("?", "B")))
        return memoryview(parts[index]).cast(form, shape)  # type: ignore[call-overload]
    raise ValueError(f"{name}: a value of kind {kind}, such as a pickle")
