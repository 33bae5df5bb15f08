"""pyzmq as its users would use it: a PAIR socket at each end, used by the main threads."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import zmq

from sfm_kernel.lessons.pingpong.mechanisms import Calls, from_dict, itself
from sfm_kernel.lessons.pingpong.messages import Attributes

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint

ZERO_COPY = 64 << 10
"""Bytes from which pyzmq is faster without copies (pyzmq's threshold)."""


class Pyzmq:
    """Raw frames: ``data`` if that is the only attribute, otherwise the pickled attributes."""

    def __init__(self, link: zmq.Socket[bytes], route: str) -> None:
        self.link, self.route = link, route

    def calls(self, attributes: Attributes) -> Calls:
        data = attributes["data"]
        if len(attributes) > 1:
            return Calls(partial(self._pickle, attributes), self._unpickle, from_dict(attributes))
        size = memoryview(data).nbytes
        send = partial(self.link.send, data, copy=size < ZERO_COPY)
        if isinstance(data, bytes):
            return Calls(send, self.link.recv, itself)
        return Calls(send, partial(self.link.recv, copy=False), partial(self._array, data.dtype))

    def _pickle(self, attributes: Attributes) -> None:
        self.link.send(pickle.dumps(attributes, protocol=5))

    def _unpickle(self) -> Any:
        return pickle.loads(self.link.recv())

    @staticmethod
    def _array(dtype: Any, frame: zmq.Frame) -> Any:
        """The memory of the frame, which belongs to the receiver and is writable."""
        import numpy as np

        return np.frombuffer(frame.buffer, dtype)


@contextmanager
def paired(sfm: Endpoint, peer: int, address: str, *, curve: bool = False) -> Iterator[Pyzmq]:
    """This engine's end of a PAIR; engine ``peer`` has the other end. Rank 0 binds ``address``.

    A PAIR takes one connection at a time: the first whose process knows the token. With ``curve``
    it is encrypted: rank 0 generates the server's keys, and the client generates its keys.
    """
    with zmq.Context() as context, context.socket(zmq.PAIR) as link:
        link.linger = 0
        if sfm.rank == 0:
            token = secrets.token_bytes(16)
            public, secret = zmq.curve_keypair()
            if curve:
                link.curve_server, link.curve_secretkey = True, secret
            link.bind(address)
            about = {"address": link.last_endpoint, "token": token, "key": public}
            sfm.send(dest=peer, tag="bench link", **about)
            if not secrets.compare_digest(link.recv(), token):
                raise ConnectionRefusedError("a stranger connected to the benchmark")
        else:
            invitation = sfm.recv(src=peer, tag="bench link")
            if curve:
                link.curve_serverkey = invitation.key
                link.curve_publickey, link.curve_secretkey = zmq.curve_keypair()
            link.connect(invitation.address.decode().rstrip("\0"))
            link.send(invitation.token)
        yield Pyzmq(link, address.partition(":")[0] + (" encrypted" if curve else ""))
