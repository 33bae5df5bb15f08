"""Encryption with CURVE, and the gate that lets only members of the world in.

All members hold the world's key and derive one CURVE key pair from it. A server proves to know it
(clients encrypt to its public half), and a ZAP handler accepts clients with that pair only. Nothing
that is sent helps to find the key. It is for TCP: a socket in the world's closed folder needs none.

Whoever has the world's key runs code in all its processes. Gateways need not: they get a key that
is derived from it and says nothing about it, and a pair of their own, which opens less.
"""

from __future__ import annotations

import hashlib
import hmac

import zmq
from zmq.utils import z85

from sfm_kernel.directory.zmq.sockets import Context, Socket, has_mail
from sfm_kernel.transport.address import check_key

MEMBER, GATEWAY = "member", "gateway"
"""What a server knows of a client: the ``User-Id`` of each frame that comes from it."""

ZAP_ENDPOINT = "inproc://zeromq.zap.01"


def gateway_key(key: bytes) -> bytes:
    """The key that gateways get, of the world's key: as ``native/src/net/seal.rs`` derives it.

    HKDF (RFC 5869) with SHA-256, 32 bytes.
    """
    extracted = hmac.new(b"sfm gateways", key, hashlib.sha256).digest()
    return hmac.new(extracted, b"key\x01", hashlib.sha256).digest()


class Keys:
    """The CURVE pair that members derive from the world's key, or gateways from theirs.

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

    @property
    def public(self) -> bytes:
        """The public half, 32 bytes, by which clients with another pair know a server."""
        return bytes(z85.decode(self._public))

    def connect(self, client: Socket, server: bytes | None = None) -> None:
        """Make a socket that connects show itself as a member, to members only.

        ``server``: the server's public half, where it has another pair.
        """
        client.curve_serverkey = self._public if server is None else z85.encode(server)
        client.curve_publickey = self._public
        client.curve_secretkey = self._secret

    def gate(self, context: Context, gateways: Keys | None = None) -> Gate:
        """The gate of all servers of ``context``; before the first of them binds.

        ``gateways``: who shows these comes in, too, as a gateway.
        """
        users = {MEMBER: self.public}
        if gateways is not None:
            users[GATEWAY] = gateways.public
        return Gate(context, users)


class Gate:
    """A ZAP handler (ZeroMQ RFC 27), served by its owner's thread.

    pyzmq's own authenticator is a thread of its own; ours has an event loop already.

    Args:
        users: who may come in, by the public keys that they show.
    """

    def __init__(self, context: Context, users: dict[str, bytes]) -> None:
        self._users = {user: b"CURVE " + public for user, public in users.items()}
        self.socket = context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.bind(ZAP_ENDPOINT)

    def serve(self) -> None:
        """Answer all requests that are waiting."""
        while has_mail(self.socket):
            request = self.socket.recv_multipart()
            version, number, *_ = request
            # request: version, id, domain, address, identity, mechanism, credentials
            shown = b" ".join(request[5:])
            verdict = [b"400", b"no member", b""]
            for user, credentials in self._users.items():
                if hmac.compare_digest(shown, credentials):
                    verdict = [b"200", b"OK", user.encode()]
            self.socket.send_multipart([version, number, *verdict, b""])
