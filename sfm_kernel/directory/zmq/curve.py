"""Encryption with CURVE, and the gate that admits only those who belong to the world.

A server has a key pair of its own, whose public half is part of its address: clients encrypt to
it, so that nobody else can answer them. A ZAP handler accepts the clients that it knows by their
pairs; and, for the first time, the pair that all derive who hold the world's key. Nothing on the
wire helps to find the key. TCP needs this; a socket in the world's private folder does not.

A program with the world's key can run code in all its processes. Gateways need less: they get a key
that is derived from the world's and reveals nothing about it, and a different pair, which opens
less.
"""

from __future__ import annotations

from collections.abc import Callable

import zmq
from zmq.utils import z85

from sfm_kernel.directory.zmq.sockets import Context, Socket, has_mail
from sfm_kernel.transport.keys import KeyPair

ZAP_ENDPOINT = "inproc://zeromq.zap.01"


def serve(server: Socket, pair: KeyPair) -> None:
    """Make a binding socket refuse strangers; its context needs a ``Gate``."""
    server.curve_server = True
    server.curve_secretkey = z85.encode(pair.secret)
    server.zap_domain = b"sfm"


class Gate:
    """A ZAP handler (ZeroMQ RFC 27), served by its owner's thread.

    It is made before a server of its context binds. pyzmq's authenticator is a separate thread; the
    gate's owner has an event loop already.

    Each frame of a client then has its public half, in hexadecimal digits, as its ``User-Id``.

    Args:
        may_connect: says whether who has the pair with this public half may connect.
    """

    def __init__(self, context: Context, may_connect: Callable[[str], bool]) -> None:
        self._may_connect = may_connect
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(ZAP_ENDPOINT)

    def serve(self) -> None:
        """Answer all requests that are waiting."""
        while has_mail(self.socket):
            request = self.socket.recv_multipart()
            version, number, _domain, _address, _identity, mechanism, *credentials = request
            user = b"".join(credentials).hex()
            is_known = mechanism == b"CURVE" and self._may_connect(user)
            verdict = [b"200", b"OK", user.encode()] if is_known else [b"400", b"no member", b""]
            self.socket.send_multipart([version, number, *verdict, b""])
