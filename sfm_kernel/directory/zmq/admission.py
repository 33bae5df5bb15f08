"""Admission of connections to a socket that others can reach, and the limit for strangers.

Each connection takes a descriptor, also a stranger's. ZeroMQ accepts every connection, and when
the process has no descriptor left it retries for ever, with a whole core. So ``Admission`` counts
the accepted connections that have not yet sent a message as a member. If there are too many, it
closes some: first connections that have not even sent ZeroMQ's signature, which a member sends at
once. It chooses among them by chance: a member that is unlucky tries again, so that members are
admitted however many strangers connect.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable

import zmq

from sfm_kernel.directory.zmq.curve import Gate, serve
from sfm_kernel.directory.zmq.sockets import (
    HANDSHAKE_SECONDS,
    Context,
    Socket,
    descriptor,
    has_mail,
)
from sfm_kernel.transport.address import most_strangers
from sfm_kernel.transport.keys import KeyPair

FAREWELL_SECONDS = 1.0
"""Seconds in which a client that was expelled is still sent that it was."""

SAY_EVERY = 60.0
"""Seconds between two warnings that strangers' connections are closed."""

SIGNATURE = 10
"""Bytes that every ZeroMQ peer sends first, without waiting for anything."""

_RECEIVED_AT = 128
"""The offset of ``tcpi_bytes_received`` in Linux's struct tcp_info."""

_EVENT = struct.Struct("=Hi")
"""The head of a monitor's message: the event, and its descriptor."""


class Admission:
    """Admits members at a ROUTER, and bounds the connections of strangers.

    For the thread that makes it, before the ROUTER binds a TCP address. One for each context.

    Args:
        pair: the server's own pair.
        may_connect: says whether who has the pair with this public half may connect.
    Attributes:
        fds: become readable when ``serve`` has something to do (see ``sockets.descriptor``).
        address: the ROUTER's address; its owner sets it.
    """

    def __init__(
        self,
        context: Context,
        router: Socket,
        pair: KeyPair,
        may_connect: Callable[[str], bool],
    ) -> None:
        self.address = ""
        serve(router, pair)
        self._gate = Gate(context, may_connect)
        self._router = router
        self._strangers: dict[int, float] = {}  # the times at which they connected
        self._users: dict[int, str] = {}  # the others, by descriptor
        self._leaving: dict[int, float] = {}  # of these, the expelled; when to hang up
        self._most = most_strangers()
        self._silent_until = 0.0
        name = f"inproc://sfm-door-{id(self)}"
        router.monitor(name, zmq.Event.ACCEPTED | zmq.Event.DISCONNECTED)
        self._monitor: Socket = context.socket(zmq.PAIR)
        # Unlimited: at a limit, ZeroMQ's thread would wait for this one while it holds a lock.
        self._monitor.rcvhwm = 0
        self._monitor.connect(name)
        self.fds = descriptor(self._gate.socket), descriptor(self._monitor)
        self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._held = os.dup(self._nothing)

    def serve(self) -> None:
        """Check the keys of new clients, and close surplus connections of strangers."""
        self._gate.serve()
        now = time.monotonic()
        while has_mail(self._monitor):
            event, fd = _EVENT.unpack_from(self._monitor.recv_multipart()[0])
            for known in (self._strangers, self._users, self._leaving):
                known.pop(fd, None)
            if event == zmq.Event.ACCEPTED:
                self._strangers[fd] = now
        for fd in [fd for fd, due in self._leaving.items() if due <= now]:
            del self._leaving[fd]
            self._shut(fd)
        if len(self._strangers) <= self._most:
            return
        # Older connections have shown the key, or ZeroMQ would have closed them.
        new = [fd for fd, since in self._strangers.items() if now - since < 2 * HANDSHAKE_SECONDS]
        self._strangers = {fd: self._strangers[fd] for fd in new}
        random.shuffle(new)
        for silent in (True, False):
            for fd in new:
                if len(self._strangers) <= self._most:
                    return
                if fd in self._strangers and self._shut(fd, silent):
                    del self._strangers[fd]
                    self._say()

    def admit(self, fd: int, user: str) -> None:
        """A message of this client has come through this descriptor: it has shown its key.

        ``serve`` has read before that the descriptor is the connection's: it answers ZAP first, and
        until then no message comes.
        """
        self._strangers.pop(fd, None)
        self._users[fd] = user

    def expel(self, user: str) -> None:
        """Hang up on a client that may not connect again, after ``FAREWELL_SECONDS``."""
        due = time.monotonic() + FAREWELL_SECONDS
        self._leaving |= {fd: due for fd, known in self._users.items() if known == user}

    def next(self) -> float | None:
        """Seconds until ``serve`` hangs up on somebody; None if it does not."""
        return max(0.0, min(self._leaving.values()) - time.monotonic()) if self._leaving else None

    def _shut(self, fd: int, silent: bool = False) -> bool:
        """Shut a connection down, with ``silent`` only if it has sent no signature.

        ZeroMQ closes it then. Returns whether the connection ends.
        """
        try:
            # The copy stays this connection, even if ``fd`` is reused. (It replaces a descriptor of
            # this object: there may be no free one.)
            os.dup2(fd, self._held, inheritable=False)
            connection = socket.socket(fileno=self._held)
            try:
                if silent and _received(connection) >= SIGNATURE:
                    return False
                if self.address.endswith(f":{connection.getsockname()[1]}"):  # not another socket
                    connection.shutdown(socket.SHUT_RDWR)
            finally:
                connection.detach()
        except OSError:  # the connection has just ended
            pass
        finally:
            os.dup2(self._nothing, self._held, inheritable=False)
        return True

    def _say(self) -> None:
        now = time.monotonic()
        if now >= self._silent_until:
            print(
                f"sfm: more than {self._most} connections to {self.address} have not shown the "
                f"world's key. Some of them are closed; clients that are connected already are not "
                f"affected. A program that can reach this address opens them",
                file=sys.stderr,
            )
        self._silent_until = now + SAY_EVERY

    def close(self) -> None:
        """Admit no more clients; call it before the ROUTER is closed."""
        self._router.disable_monitor()
        self._monitor.close(0)
        self._gate.socket.close()
        os.close(self._held)
        os.close(self._nothing)


def _received(connection: socket.socket) -> int:
    """The bytes received on a TCP connection; ``SIGNATURE`` if the kernel does not say."""
    about = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(about) < _RECEIVED_AT + 8:
        return SIGNATURE
    return int.from_bytes(about[_RECEIVED_AT : _RECEIVED_AT + 8], sys.byteorder)
