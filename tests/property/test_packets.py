"""Packets: what is encoded decodes; what is damaged is refused, and never crashes."""

from __future__ import annotations

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_kernel import PacketError, decode, encode

LONG = 1025  # drawn as repeated pieces: to draw so many characters would take the test's whole time
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.binary(),
        st.text(min_size=1, max_size=3).map(lambda text: text * LONG),
        st.binary(min_size=1, max_size=3).map(lambda data: data * LONG),
        st.builds(np.arange, st.integers(0, 700)),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner), st.tuples(inner)),
    max_leaves=8,
)
NAMES = st.text(min_size=1, max_size=12).filter(lambda s: s.isprintable())
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=20)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(ATTRIBUTES)
def test_round_trip(attributes: dict[str, object]) -> None:
    (message,), leftover = decode(encode(**attributes))
    assert leftover == b""
    assert list(message) == list(attributes)
    assert all(same(attributes[name], message[name]) for name in attributes)


@given(st.lists(ATTRIBUTES, max_size=6), st.data())
def test_a_stream_cut_anywhere(packets: list[dict[str, object]], data: st.DataObject) -> None:
    stream = b"".join(encode(**attributes) for attributes in packets)
    got = []
    leftover = b""
    while stream:
        cut = data.draw(st.integers(1, len(stream)))
        messages, leftover = decode(leftover + stream[:cut])
        got += messages
        stream = stream[cut:]
    assert leftover == b""
    assert [list(names) for names in got] == [list(names) for names in packets]


@given(ATTRIBUTES, st.data())
def test_damage_never_crashes(attributes: dict[str, object], data: st.DataObject) -> None:
    packet = bytearray(encode(**attributes))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, min(len(packet), 200) - 1))
        packet[position] = data.draw(st.integers(0, 255))
    try:
        messages, _ = decode(bytes(packet))
    except PacketError:
        return
    for message in messages:
        for name in message:
            # A damaged value may not unpickle, or be another value: no crash is what is promised.
            # Bugs of ours would show as a panic, which is no Exception.
            with contextlib.suppress(Exception):
                message[name]


@given(st.binary(max_size=300))
def test_noise_is_refused_or_incomplete(noise: bytes) -> None:
    try:
        messages, leftover = decode(noise)
    except PacketError:
        return
    assert messages == [] and leftover == noise


GOOD = encode(tag=1, data=b"x" * 2000)


@pytest.mark.parametrize(
    ("packet", "says"),
    [
        (b"X" + GOOD[1:], "magic"),
        (b"GET / HTTP/1.1\r\n", "magic"),
        (GOOD[:4] + b"\x63" + GOOD[5:], "version 99"),
        (GOOD[:5] + b"\x02" + GOOD[6:], "flags"),
        (GOOD[:5] + b"\x01" + GOOD[6:], "damaged"),  # an envelope has no attributes
        (GOOD[:16] + (3).to_bytes(8, "little") + GOOD[24:], "length 3"),
        (GOOD[:16] + (2**63 + 5).to_bytes(8, "little") + GOOD[24:], "length"),
        (GOOD[:6] + b"\xff\xff" + GOOD[8:], "damaged"),
        (GOOD[:12] + b"\xff\xff\xff\x7f" + GOOD[16:], "length"),
    ],
)
def test_errors_say_what_is_wrong_with_a_packet(packet: bytes, says: str) -> None:
    with pytest.raises(PacketError, match=says):
        decode(packet)


def test_a_huge_length_allocates_nothing() -> None:
    header = GOOD[:16] + (1 << 50).to_bytes(8, "little") + GOOD[24:]
    assert decode(header) == ([], header), "it may still come, a petabyte of it"


def test_an_incomplete_packet_is_left_over() -> None:
    for cut in range(len(GOOD)):
        assert decode(GOOD[:cut]) == ([], GOOD[:cut])
