"""A peer that is played by hand: with pyzmq, and the frames of ``wire``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import zmq
from zmq.utils import z85

from sfm_kernel import Endpoint
from sfm_kernel.directory import Member
from sfm_kernel.transport.keys import KeyPair
from tests.zmq import wire

PATIENCE = 60_000
"""Milliseconds for which something is waited for that must come."""
OVER = (
    zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)
"""What libzmq reports of a connection that is over, or has not come about."""

Context = zmq.Context[zmq.Socket[bytes]]


class Dealer:
    """A connection to a member. (As a member does, it lets libzmq make no second one.)

    Args:
        pair: it shows these keys.
    """

    def __init__(self, context: Context, to: Member, pair: KeyPair) -> None:
        self._socket = context.socket(zmq.DEALER)
        self._socket.linger, self._socket.reconnect_ivl = 0, -1
        self._socket.curve_serverkey = z85.encode(bytes.fromhex(to.public))
        self._socket.curve_secretkey = z85.encode(pair.secret)
        self._socket.curve_publickey = z85.encode(pair.public)
        self._report = self._socket.get_monitor_socket(OVER)
        self._is_over = False
        self._socket.connect(to.address)

    def send(self, frame: bytes) -> None:
        """Harmless at the end of the connection."""
        with contextlib.suppress(zmq.Again):
            self._socket.send(frame, zmq.DONTWAIT)

    def receive(self) -> bytes:
        """The next frame; raises EOFError at the end of the connection."""
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        if not self._is_over:
            poller.register(self._report, zmq.POLLIN)
        # libzmq reports the end a moment before it hands over what came last.
        ready = dict(poller.poll(100 if self._is_over else PATIENCE))
        if self._socket in ready:
            return self._socket.recv()
        if self._is_over:
            raise EOFError
        assert ready, "neither a frame has come nor the end"
        self._is_over = True
        return self.receive()

    def close(self) -> None:
        self._socket.disable_monitor()
        self._socket.close()


@contextlib.contextmanager
def dealer(to: Member, pair: KeyPair) -> Iterator[Dealer]:
    """A connection to a member, closed at the end; arguments as of ``Dealer``."""
    context: Context = zmq.Context()
    made = Dealer(context, to, pair)  # held: pyzmq closes what nobody holds
    try:
        yield made
    finally:
        context.destroy(linger=0)


class Accepted:
    """The connection of a member that has connected to a ``Listener``, and its first frame."""

    def __init__(self, router: zmq.Socket[bytes], route: bytes, first: bytes) -> None:
        self._router, self._route, self._first = router, route, [first]

    def send(self, frame: bytes) -> None:
        self._router.send_multipart([self._route, frame])

    def receive(self) -> bytes:
        """The next frame, also of other connections of the same member."""
        if self._first:
            return self._first.pop()
        assert self._router.poll(PATIENCE), "no frame has come"
        _, frame = self._router.recv_multipart()
        return frame

    def close(self) -> None:
        """Its end is that of the listener."""


class Listener:
    """Where others can connect to the process with this pair of keys; it lets anybody in."""

    def __init__(self, context: Context, pair: KeyPair) -> None:
        self._router = context.socket(zmq.ROUTER)
        self._router.linger, self._router.curve_server = 0, True
        self._router.curve_secretkey = z85.encode(pair.secret)
        self._router.bind("tcp://127.0.0.1:*")
        self.address = self._router.last_endpoint.decode()

    def accept(self) -> Accepted:
        assert self._router.poll(PATIENCE), "nobody has connected"
        return Accepted(self._router, *self._router.recv_multipart())


class Impostor:
    """Sends frames to one endpoint in the place of another, which is silent meanwhile.

    It has the world's key and that other one's, and its counters begin above all that the true one
    uses: an older greeting is refused as one that was overheard. The receiver can connect to it,
    and is not heard before ``accept``. With a ``site`` it claims to be of that one: frames are
    sealed between sites.
    """

    def __init__(
        self, receiver: Endpoint, to: Member, sender: Endpoint, site: str | None = None
    ) -> None:
        self.receiver, self._to, self.keys = receiver, to, sender._directory.pair
        self.secret = receiver._directory.key
        sites = to.site if site is None else site, to.site
        self.pair = wire.Pair(self.secret, sender.uid, to.uid, sites=sites, counter=1 << 40)
        self._context: Context = zmq.Context()
        self._listener = Listener(self._context, self.keys)
        self.reached_at = self._listener.address
        self.connection: Any = Dealer(self._context, self._to, self.keys)
        self.heard = list[wire.Frame]()

    def again(self) -> None:
        """Go on over a new connection."""
        self.connection.close()
        self.connection, self.heard = Dealer(self._context, self._to, self.keys), []

    def accept(self) -> None:
        """Go on over the connection that the receiver makes when this one has ended."""
        self.connection.close()
        self.connection, self.heard = self._listener.accept(), []

    def put(self, kind: bytes, number: int = 0, body: bytes = b"", flag: bool = False) -> None:
        self.connection.send(self.pair.seal(wire.Frame(kind, number, body, flag)))

    def greet(self, number: int = 0, again: bool = False) -> None:
        self.put(b"H", number, self.reached_at.encode(), again)

    def hears(self, kind: bytes) -> wire.Frame:
        """The next frame of this kind, on this connection; EOFError at its end."""
        while True:
            for frame in self.heard:
                if frame.kind == kind:
                    self.heard.remove(frame)
                    return frame
            self.heard.append(self.pair.open(*wire.split(self.connection.receive())))

    def is_hung_up_on(self) -> None:
        """Returns when the connection has ended."""
        with contextlib.suppress(EOFError):
            while True:
                self.connection.receive()

    def close(self) -> None:
        self.put(b"B")  # or the receiver would wait for what it has not acknowledged
        self._context.destroy(linger=1000)  # it goes first
