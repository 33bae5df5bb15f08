"""Encryption with CURVE, and the gate that lets only members of the world in.

All members hold the world's key and derive one CURVE key pair from it. A server proves to know it
(clients encrypt to its public half), and a ZAP handler accepts clients with that pair only. Nothing
that is sent helps to find the key. It is for TCP: a socket in the world's closed folder needs none.
"""

from __future__ import annotations

import hashlib
import hmac

import zmq
from zmq.utils import z85

from sfm_kernel.transport.zmq.identity import check_key
from sfm_kernel.transport.zmq.sockets import Context, Socket, has_mail

ZAP_ENDPOINT = "inproc://zeromq.zap.01"


class Keys:
    """The CURVE pair that members derive from the world's key.

    Args:
        key: the world's secret.
        purpose: different purposes give unrelated pairs.
    Raises:
        WorldAccess: see ``check_key``.
    """

    def __init__(self, key: bytes, purpose: bytes) -> None:
        check_key(key)
        self._secret = z85.encode(hmac.new(key, purpose, hashlib.sha256).digest())
        self._public = zmq.curve_public(self._secret)

    def serve(self, server: Socket) -> None:
        """Make a socket that binds refuse strangers; its context needs a ``Gate``."""
        server.curve_server = True
        server.curve_secretkey = self._secret
        server.zap_domain = b"sfm"

    def connect(self, client: Socket) -> None:
        """Make a socket that connects show itself as a member, to members only."""
        client.curve_serverkey = self._public
        client.curve_publickey = self._public
        client.curve_secretkey = self._secret

    def gate(self, context: Context) -> Gate:
        """The gate of all servers of ``context``; before the first of them binds."""
        return Gate(context, [b"CURVE", z85.decode(self._public)])


class Gate:
    """A ZAP handler (ZeroMQ RFC 27), served by its owner's thread.

    pyzmq's own authenticator is a thread of its own; ours has an event loop already.
    """

    def __init__(self, context: Context, credentials: list[bytes]) -> None:
        self._credentials = b" ".join(credentials)
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(ZAP_ENDPOINT)

    def serve(self) -> None:
        """Answer all requests that are waiting."""
        while has_mail(self.socket):
            request = self.socket.recv_multipart()
            version, number, *_ = request
            # request: version, id, domain, address, identity, mechanism, credentials
            welcome = hmac.compare_digest(b" ".join(request[5:]), self._credentials)
            verdict = [b"200", b"OK", b"member"] if welcome else [b"400", b"no member", b""]
            self.socket.send_multipart([version, number, *verdict, b""])
