"""Messages, and the packets in which they travel.

Source: SFM paper, sections 2 (attributes) and 4.1, 4.2 (encode, decode).
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

from sfm_kernel import _native
from sfm_kernel._native import Message, Packet

__all__ = ["Message", "Packet", "decode", "encode", "pack"]

pack = _native.pack


def encode(**attributes: Any) -> bytes:
    """Encode these attributes, in their order, as one packet.

    Args:
        attributes: any values that can be pickled. Arrays travel as their memory.
    Returns:
        The packet, to be sent over any byte stream and read with ``decode``.
    Raises:
        EncodeError: a value cannot be pickled; its ``attribute`` names it.
    Cost: one copy of the values into the packet, one into the returned bytes.
    Source: SFM paper, section 4.1.
    Example:
        >>> messages, leftover = decode(encode(tag=42, data=[1, 2]) + b"")
        >>> messages[0].tag, messages[0].data, leftover
        (42, [1, 2], b'')
    """
    return bytes(_native.pack(attributes))


def decode(data: bytes | bytearray | memoryview) -> tuple[list[Message], bytes]:
    """Decode the complete messages at the head of ``data``; also return the leftover bytes.

    Keeps no state: prepend the leftover to the next bytes and call again. An incomplete packet is
    part of the leftover as a whole; if nothing is left, it is ``b""``.

    Decode only bytes from a sender that you would let run code: values other than plain numbers,
    texts, bytes and arrays are pickles, and to read such a value (also by ``repr``, which reads all
    of them) runs code that the sender has chosen. This function itself runs none of it.

    Raises:
        PacketError: the bytes are not a packet: wrong magic, version or length, damaged tables. It
            is raised as soon as this shows, even if the packet is incomplete.
    Order, Cost: as in ``data``; one copy of each packet, values are decoded when first read.
    Source: SFM paper, section 4.2.
    Example:
        >>> stream = encode(n=1) + encode(n=2)
        >>> messages, leftover = decode(stream[:-3])
        >>> len(messages), leftover + stream[-3:] == encode(n=2)
        (1, True)
    """
    return _native.decode(data)


def rebuild_message(attributes: Mapping[str, Any]) -> Message:
    """The message with these attributes; pickle restores messages with it."""
    (message,), _ = _native.decode(_native.pack(dict(attributes)))
    return message


def message_html(message: Message) -> str:
    """A message as an HTML table for notebooks; every value is escaped."""

    def cell(value: Any) -> str:
        text = repr(value)
        short = text if len(text) <= 400 else text[:400] + " …"
        return f"<td style='text-align:left'><code>{html.escape(short)}</code></td>"

    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>{cell(message[name])}</tr>"
        for name in message
    )
    return f"<table><caption style='text-align:left'>Message</caption>{rows}</table>"
