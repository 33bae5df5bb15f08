"""Sockets that speak to a directory server by hand."""

from __future__ import annotations

import json

import zmq
from zmq.utils import z85

from sfm_kernel._native import LARGEST_FRAME
from sfm_kernel.transport.keys import KeyPair


def place(url: str) -> str:
    """Where the server at ``url`` listens."""
    return url.rpartition("/")[0]


def public_half(url: str) -> bytes:
    """The public half of its pair."""
    return bytes.fromhex(url.rpartition("/")[2])


def frames(request: bytes, body: bytes) -> list[bytes]:
    """The frames of a message to the server: those of the request; an empty one, and the body."""
    parts = [request] if not body else [request, b"", body]
    piece = LARGEST_FRAME - 256
    return [part[at : at + piece] for part in parts for at in range(0, len(part) or 1, piece)]


def connect(dealer: zmq.Socket[bytes], url: str, pair: KeyPair) -> None:
    """Connect to the server at ``url``, and show it this pair."""
    dealer.curve_serverkey = z85.encode(public_half(url))
    dealer.curve_publickey = z85.encode(pair.public)
    dealer.curve_secretkey = z85.encode(pair.secret)
    dealer.connect(place(url))


def connect_newcomer(dealer: zmq.Socket[bytes], url: str, key: bytes) -> None:
    """Connect as who has shown the world's key, and not said hello yet."""
    connect(dealer, url, KeyPair.of_newcomers(key))


def connect_member(dealer: zmq.Socket[bytes], url: str, key: bytes) -> None:
    """Connect as a client that the server has admitted."""
    pair = KeyPair.fresh()
    with zmq.Context() as context, context.socket(zmq.DEALER) as door:
        connect_newcomer(door, url, key)
        door.send(json.dumps({"number": 1, "ask": "hello", "public": pair.public.hex()}).encode())
        assert "world" in json.loads(door.recv())
    connect(dealer, url, pair)
