"""Encryption with CURVE, and the gate that admits only members of the world.

All members hold the world's key and derive one CURVE key pair from it. A server proves that it
knows the pair (clients encrypt to its public half), and a ZAP handler accepts clients with that
pair only. Nothing on the wire helps to find the key. TCP needs this; a socket in the world's
private folder does not.

A program with the world's key can run code in all its processes. Gateways need less: they get a key
that is derived from the world's and reveals nothing about it, and a different pair, which opens
less.
"""

from __future__ import annotations

import hashlib
import hmac

import zmq
from zmq.utils import z85

from sfm_kernel.directory.zmq.sockets import Context, Socket, has_mail
from sfm_kernel.transport.address import check_key

MEMBER, GATEWAY = "member", "gateway"
"""The kinds of clients: the ``User-Id`` of each frame from a client."""

ZAP_ENDPOINT = "inproc://zeromq.zap.01"


def gateway_key(key: bytes) -> bytes:
    """The gateways' key, derived from the world's as in ``native/src/net/seal.rs``.

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
        """Make a binding socket refuse strangers; its context needs a ``Gate``."""
        server.curve_server = True
        server.curve_secretkey = self._secret
        server.zap_domain = b"sfm"

    @property
    def public(self) -> bytes:
        """The public half, 32 bytes; clients with another pair recognise a server by it."""
        return bytes(z85.decode(self._public))

    def connect(self, client: Socket, server: bytes | None = None) -> None:
        """Make a connecting socket authenticate itself and its server with this pair.

        ``server``: the server's public half, if it has another pair.
        """
        client.curve_serverkey = self._public if server is None else z85.encode(server)
        client.curve_publickey = self._public
        client.curve_secretkey = self._secret


class Gate:
    """A ZAP handler (ZeroMQ RFC 27), served by its owner's thread.

    It is made before a server of its context binds. pyzmq's authenticator is a separate thread; the
    gate's owner has an event loop already.

    Args:
        users: the public keys of the admitted kinds of clients.
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
