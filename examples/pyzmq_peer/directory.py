"""A client of the directory server: JSON over a DEALER, with CURVE."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from typing import Any

import zmq
from zmq.utils import z85


class Lost(Exception):
    """The other process has ended, left, or given this one up."""


def show(dealer: zmq.Socket[bytes], pair: tuple[bytes, bytes], server: bytes) -> None:
    """Let a connecting socket show these keys, and talk to the owner of that one only. (Z85.)"""
    dealer.curve_publickey, dealer.curve_secretkey = pair
    dealer.curve_serverkey, dealer.linger = server, 0


class Directory:
    """Asks the directory server, and knows the members that it has published.

    The first question is asked with keys that are derived from the world's: that proves it. The
    rest is asked with this process's own keys, by which the server and the members know it.
    """

    def __init__(self, context: zmq.Context[Any], url: str, key: bytes) -> None:
        place, _, public = url.rpartition("/")
        self._server = z85.encode(bytes.fromhex(public))
        self._address, self._numbers = place, itertools.count(1)
        public_half, secret = zmq.curve_keypair()
        self.pair = public_half, secret
        self.public = z85.decode(public_half).hex()
        self.state: dict[str, Any] = {"members": [], "dead": []}
        if len(key) < 32:
            key = hashlib.scrypt(key, salt=b"sfm world", n=1 << 14, r=8, p=1, dklen=32)
        half = z85.encode(hmac.digest(key, b"sfm directory", hashlib.sha256))
        self.socket = self._connect(context, (zmq.curve_public(half), half))
        self.world = self.ask("hello", public=self.public)["world"]
        self.socket.close()
        self.socket = self._connect(context, self.pair)

    def _connect(self, context: zmq.Context[Any], pair: tuple[bytes, bytes]) -> zmq.Socket[bytes]:
        dealer: zmq.Socket[bytes] = context.socket(zmq.DEALER)
        show(dealer, pair, self._server)
        dealer.connect(self._address)
        return dealer

    def ask(self, what: str, **details: Any) -> dict[str, Any]:
        """The answer. Raises TimeoutError without one, RuntimeError if the server refuses."""
        number = next(self._numbers)
        self.socket.send(json.dumps({"number": number, "ask": what} | details).encode())
        while self.socket.poll(10_000):
            answer = self.read()
            if answer.get("number") == number:
                if "error" in answer:
                    raise RuntimeError(answer["message"])
                return answer
        raise TimeoutError(f"no directory server answers at {self._address}, or not to this key")

    def read(self) -> dict[str, Any]:
        """What has come from the server: an answer, or news of the members."""
        answer: dict[str, Any] = json.loads(self.socket.recv_multipart()[0])
        if "members" in answer:
            self.state = answer
        return answer

    def find(self, name: str | int) -> dict[str, Any]:
        """The living member with this name or rank; raises Lost."""
        for member in self.state["members"]:
            if name in (member["name"], member["rank"], member["uid"]):
                if member["uid"] in self.state["dead"]:
                    break
                return dict(member)
        raise Lost(f"process {name!r} is not there, or no longer")
