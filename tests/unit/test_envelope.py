"""A process without Python sends two numbers with a message: Python sees them under names."""

import struct

import pytest

from sfm_kernel.errors import PacketError
from sfm_kernel.message import decode


def envelope(source: int, tag: int, payload: bytes, table: int | None = None) -> bytes:
    """A packet as packet/envelope.rs says."""
    length = 24 + len(payload) if table is None else table
    total, context, note = 56 + len(payload), 0, 0
    header = struct.pack("<4sBBHIIQQ", b"SFP\xb5", 2, 1, 0, length, 0, total, context)
    return header + struct.pack("<qqQ", source, tag, note) + payload


def test_numbers_and_bytes_are_attributes() -> None:
    messages, leftover = decode(envelope(1, 7, b"hello") + envelope(2, -3, b"") + b"SFP")
    assert [dict(message) for message in messages] == [
        {"src": 1, "tag": 7, "data": b"hello"},
        {"src": 2, "tag": -3, "data": b""},
    ]
    assert leftover == b"SFP"


@pytest.mark.parametrize("table", [0, 23, 100])
def test_a_table_that_is_too_short_or_too_long_is_refused(table: int) -> None:
    with pytest.raises(PacketError):
        decode(envelope(1, 7, b"hello", table))
