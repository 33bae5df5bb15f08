"""Sockets that speak to a directory server by hand."""

from __future__ import annotations

import json

import zmq

from sfm_kernel.directory.address import ServerAddress
from sfm_kernel.directory.gateways import MEMBERS_PURPOSE
from sfm_kernel.directory.zmq.curve import derived_pair, prove
from sfm_kernel.transport.keys import KeyPair


def connect(dealer: zmq.Socket[bytes], url: str, pair: KeyPair) -> None:
    """Connect to the server at ``url``, and show it this pair."""
    address = ServerAddress.parse(url)
    prove(dealer, pair, address.public)
    dealer.connect(address.place)


def connect_newcomer(dealer: zmq.Socket[bytes], url: str, key: bytes) -> None:
    """Connect as who has shown the world's key, and not said hello yet."""
    connect(dealer, url, derived_pair(key, MEMBERS_PURPOSE))


def connect_member(dealer: zmq.Socket[bytes], url: str, key: bytes) -> None:
    """Connect as a client that the server has admitted."""
    pair = KeyPair.fresh()
    with zmq.Context() as context, context.socket(zmq.DEALER) as door:
        connect_newcomer(door, url, key)
        door.send(json.dumps({"number": 1, "ask": "hello", "public": pair.public.hex()}).encode())
        assert "world" in json.loads(door.recv())
    connect(dealer, url, pair)
