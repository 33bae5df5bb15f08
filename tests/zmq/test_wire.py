"""The second implementation of the wire format computes what the standards' examples say."""

from __future__ import annotations

import pytest

from tests.zmq import wire

pytestmark = pytest.mark.zmq


def test_aes() -> None:
    """FIPS 197, C.3."""
    keys = wire.expand_key(bytes(range(32)))
    block = wire.encrypt_block(keys, bytes.fromhex("00112233445566778899aabbccddeeff"))
    assert block.hex() == "8ea2b7ca516745bfeafc49904b496089"


def test_gcm() -> None:
    """Test case 16 of McGrew and Viega, The Galois/Counter Mode of Operation."""
    gcm = wire.Gcm(bytes.fromhex("feffe9928665731c6d6a8f9467308308") * 2)
    text = bytes.fromhex(
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
    )
    clear = bytes.fromhex("feedfacedeadbeeffeedfacedeadbeefabaddad2")
    nonce = bytes.fromhex("cafebabefacedbaddecaf888")
    sealed = gcm.seal(nonce, text, clear)
    assert sealed[-16:].hex() == "76fc6ece0f4e1768cddf8853bb2d551b"
    assert gcm.open(nonce, sealed, clear) == text
    with pytest.raises(ValueError, match="tag"):
        gcm.open(nonce, sealed, clear + b"\0")


def test_keys() -> None:
    """A pair has a key for each direction, which depends on the world's."""
    low, high = "0" * 31 + "1", "f" * 32
    keys = {
        wire.pair_key(key, *ends) for key in (b"1", b"2") for ends in ((low, high), (high, low))
    }
    assert len(keys) == 4 and {len(key) for key in keys} == {32}
    assert wire.site_number("") == 0x811C9DC5 and wire.site_number("a") == 0xE40C292C
