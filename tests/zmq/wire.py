"""The wire format of native/src/frame, written a second time, from its description.

Two implementations that understand each other show that the format is what it is said to be. AES
is that of FIPS 197, GCM that of NIST SP 800-38D, HKDF that of RFC 5869: slow, and without a thought
of side channels. For tests only.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

HEADER = struct.Struct("<IBBBBIIIB3x16s16sQ")
INNER = struct.Struct("<B?6xQQ")
TAG = 16
VERSION = 1
LARGEST, LARGEST_CLEAR = 60 << 10, 512 << 10
"""Bytes of a body at most: of a sealed frame, and of a clear one, within a site."""
RESUME = 4
"""The class of a greeting that asks how far everything has come."""


# ---- AES-256 ---------------------------------------------------------------------------------


def _double(byte: int) -> int:
    return (byte << 1) ^ (0x11B if byte & 0x80 else 0)


def _boxes() -> bytes:
    """SubBytes: the inverse in GF(2^8), by powers of 3 and of its inverse, and an affine map."""
    power, inverse, box = 1, 1, bytearray(256)
    while True:
        power ^= _double(power)
        inverse ^= inverse << 1
        inverse ^= inverse << 2
        inverse ^= inverse << 4
        inverse &= 0xFF
        inverse ^= 0x09 if inverse & 0x80 else 0
        turned = inverse
        for by in range(1, 5):
            turned ^= (inverse << by | inverse >> (8 - by)) & 0xFF
        box[power] = turned ^ 0x63
        if power == 1:
            box[0] = 0x63
            return bytes(box)


_BOX = _boxes()
_DOUBLED = bytes(map(_double, range(256)))


def expand_key(key: bytes) -> list[bytes]:
    """The 15 round keys of AES-256."""
    words = [key[begin : begin + 4] for begin in range(0, 32, 4)]
    constant = 1
    while len(words) < 60:
        word = words[-1]
        if len(words) % 8 == 0:
            word = bytes(_BOX[byte] for byte in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _double(constant)
        elif len(words) % 8 == 4:
            word = bytes(_BOX[byte] for byte in word)
        words.append(bytes(a ^ b for a, b in zip(word, words[-8], strict=True)))
    return [b"".join(words[begin : begin + 4]) for begin in range(0, 60, 4)]


def encrypt_block(round_keys: list[bytes], block: bytes) -> bytes:
    """One block, of 16 bytes."""
    state = [a ^ b for a, b in zip(block, round_keys[0], strict=True)]
    for nth, key in enumerate(round_keys[1:], 1):
        # ShiftRows after SubBytes: the byte in row r of column c comes from column c + r.
        state = [_BOX[state[(place + 4 * (place % 4)) % 16]] for place in range(16)]
        if nth < 14:
            mixed = []
            for begin in range(0, 16, 4):
                column = state[begin : begin + 4]
                every = column[0] ^ column[1] ^ column[2] ^ column[3]
                for row in range(4):
                    pair = column[row] ^ column[(row + 1) % 4]
                    mixed.append(column[row] ^ every ^ _DOUBLED[pair])
            state = mixed
        state = [a ^ b for a, b in zip(state, key, strict=True)]
    return bytes(state)


# ---- GCM -------------------------------------------------------------------------------------


def _times(x: int, y: int) -> int:
    """In GF(2^128), whose first bit is the highest."""
    product = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            product ^= y
        y = y >> 1 ^ (0xE1 << 120 if y & 1 else 0)
    return product


class Gcm:
    """AES-256-GCM with nonces of 12 bytes."""

    def __init__(self, key: bytes) -> None:
        self._keys = expand_key(key)
        self._hash_key = int.from_bytes(encrypt_block(self._keys, bytes(16)))

    def _stream(self, nonce: bytes, text: bytes) -> bytes:
        blocks = (len(text) + 15) // 16
        key = b"".join(
            encrypt_block(self._keys, nonce + (2 + nth).to_bytes(4)) for nth in range(blocks)
        )
        return bytes(a ^ b for a, b in zip(text, key, strict=False))

    def _tag(self, nonce: bytes, sealed: bytes, clear: bytes) -> bytes:
        lengths = (8 * len(clear)).to_bytes(8) + (8 * len(sealed)).to_bytes(8)
        digest = 0
        for field in (clear, sealed, lengths):
            for begin in range(0, len(field), 16):
                block = int.from_bytes(field[begin : begin + 16].ljust(16, b"\0"))
                digest = _times(digest ^ block, self._hash_key)
        mask = encrypt_block(self._keys, nonce + b"\0\0\0\1")
        return (digest ^ int.from_bytes(mask)).to_bytes(16)

    def seal(self, nonce: bytes, text: bytes, clear: bytes) -> bytes:
        sealed = self._stream(nonce, text)
        return sealed + self._tag(nonce, sealed, clear)

    def open(self, nonce: bytes, sealed: bytes, clear: bytes) -> bytes:
        """ValueError if it was not sealed with this key."""
        sealed, tag = sealed[:-TAG], sealed[-TAG:]
        if tag != self._tag(nonce, sealed, clear):
            raise ValueError("the tag is another one")
        return self._stream(nonce, sealed)


# ---- frames ----------------------------------------------------------------------------------


def pair_key(secret: bytes, sender: str, receiver: str, salt: bytes = b"sfm frames 1") -> bytes:
    """The key of one direction of a pair: HKDF-SHA256 of the world's."""
    extracted = hmac.digest(salt, secret, hashlib.sha256)
    return hmac.digest(extracted, uid_bytes(sender) + uid_bytes(receiver) + b"\1", hashlib.sha256)


def uid_bytes(uid: str) -> bytes:
    return bytes.fromhex(uid)[::-1]


def site_number(name: str) -> int:
    """FNV-1a."""
    number = 0x811C9DC5
    for byte in name.encode():
        number = (number ^ byte) * 0x01000193 % (1 << 32)
    return number


def nonce(counter: int) -> bytes:
    return counter.to_bytes(8, "little").rjust(12, b"\0")


def authenticated(header: bytes) -> bytes:
    """The header without the byte that gateways change."""
    return header[:5] + b"\0" + header[6:]


@dataclass
class Frame:
    """An opened frame.

    Attributes:
        sender, receiver: uids.
        ahead: bytes of the same message that follow.
        arrived: the number of the last frame that has arrived from the other side.
    """

    kind: bytes
    number: int = 0
    body: bytes = b""
    flag: bool = False
    arrived: int = 0
    sender: str = ""
    receiver: str = ""
    counter: int = 0
    klass: int = 1
    ahead: int = 0


class Pair:
    """Makes the frames that ``own`` sends to ``peer``, and reads those that come from there.

    Args:
        sites: the names of both sites. Frames within one are clear, between two they are sealed.
        version: the format's; another one than ``VERSION`` is for tests of what is said to it.
    """

    def __init__(
        self,
        secret: bytes,
        own: str,
        peer: str,
        *,
        sites: tuple[str, str],
        counter: int = 1,
        version: int = VERSION,
    ) -> None:
        self.own, self.peer, self.counter = own, peer, counter
        self.sites = tuple(map(site_number, sites))
        self.clear, self.version = sites[0] == sites[1], version
        self._out = Gcm(pair_key(secret, own, peer))
        self._in = Gcm(pair_key(secret, peer, own))

    def seal(self, frame: Frame) -> bytes:
        """The bytes of a whole frame, with the next counter; sealed between sites."""
        text = INNER.pack(frame.kind[0], frame.flag, frame.number, frame.arrived) + frame.body
        ends = uid_bytes(frame.sender or self.own), uid_bytes(frame.receiver or self.peer)
        length = len(text) + (0 if self.clear else TAG)
        numbers = (length, ord("S"), 8, frame.klass, self.version, frame.ahead, *self.sites)
        header = HEADER.pack(*numbers, self.clear, *ends, self.counter)
        if not self.clear:
            text = self._out.seal(nonce(self.counter), text, authenticated(header))
        self.counter += 1
        return header + text

    def open(self, header: bytes, sealed: bytes) -> Frame:
        fields = HEADER.unpack(header)
        length, magic, _hops, klass, version, ahead, _, _, clear, sender, receiver, counter = fields
        assert (length, magic, version) == (len(sealed), ord("S"), VERSION)
        assert (sender, receiver) == (uid_bytes(self.peer), uid_bytes(self.own))
        assert clear == self.clear
        text = sealed
        if not self.clear:
            text = self._in.open(nonce(counter), sealed, authenticated(header))
        kind, flag, number, arrived = INNER.unpack_from(text)
        return Frame(
            kind=bytes([kind]),
            number=number,
            body=text[INNER.size :],
            flag=flag,
            arrived=arrived,
            sender=self.peer,
            receiver=self.own,
            counter=counter,
            klass=klass,
            ahead=ahead,
        )


def split(frame: bytes) -> tuple[bytes, bytes]:
    """Its header, and the sealed text."""
    return frame[: HEADER.size], frame[HEADER.size :]
