"""Who comes in through a socket that others can reach, and how many may stand in front of it.

Each connection takes a descriptor, whoever has opened it. ZeroMQ accepts as many as come, and when
the process has no descriptor left it tries for ever, with a whole core. So the door counts those
who have been let in and have not yet said anything as a member, and of too many some have to go:
first of those who have not even said that they speak ZeroMQ, which a member does at once. Which of
them is left to chance: who is unlucky tries again, so that members come in however many others do.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable

import zmq

from sfm_kernel.directory.zmq.curve import Keys
from sfm_kernel.directory.zmq.limits import HANDSHAKE_SECONDS
from sfm_kernel.directory.zmq.sockets import Context, Socket, descriptor, has_mail
from sfm_kernel.transport.address import most_strangers

SAY_EVERY = 60.0
"""Seconds until it is said again that strangers are turned away."""

SIGNATURE = 10
"""Bytes with which everybody who speaks ZeroMQ begins, without waiting for anything."""

_RECEIVED_AT = 128
"""Where ``tcpi_bytes_received`` is in Linux's struct tcp_info."""

_EVENT = struct.Struct("=Hi")
"""How a monitor's message begins: what happened, and to which descriptor."""


class Admission:
    """Lets members in at a ROUTER, and counts the others.

    For the thread that makes it, before the ROUTER binds a TCP address. One for each context.

    Args:
        keys: what members show.
        members: gives the descriptors of connections through which messages have come since it
            was last called: who can send one has shown the key.
        gateways: what gateways show, where they may come in.
    Attributes:
        fds: become readable when ``serve`` has something to do (see ``sockets.descriptor``).
        address: what the ROUTER is bound to; for its owner to set.
    """

    def __init__(
        self,
        context: Context,
        router: Socket,
        keys: Keys,
        members: Callable[[], Iterable[int]],
        gateways: Keys | None = None,
    ) -> None:
        self.address = ""
        keys.serve(router)
        self._gate = keys.gate(context, gateways)
        self._router, self._members = router, members
        self._strangers: dict[int, float] = {}  # when they came
        self._most = most_strangers()
        self._silent_until = 0.0
        name = f"inproc://sfm-door-{id(self)}"
        router.monitor(name, zmq.Event.ACCEPTED | zmq.Event.DISCONNECTED)
        self._monitor: Socket = context.socket(zmq.PAIR)
        # Without a limit: at one, ZeroMQ's own thread would wait for us with a lock in its hand.
        self._monitor.rcvhwm = 0
        self._monitor.connect(name)
        self.fds = descriptor(self._gate.socket), descriptor(self._monitor)
        self._nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._held = os.dup(self._nothing)

    def serve(self) -> None:
        """Look at the keys that are shown, and turn away whoever is too many."""
        self._gate.serve()
        now = time.monotonic()
        while has_mail(self._monitor):
            event, fd = _EVENT.unpack_from(self._monitor.recv_multipart()[0])
            self._strangers.pop(fd, None)
            if event == zmq.Event.ACCEPTED:
                self._strangers[fd] = now
        for fd in self._members():
            self._strangers.pop(fd, None)
        if len(self._strangers) <= self._most:
            return
        # Who is there for longer has shown the key, or ZeroMQ would have ended it.
        new = [fd for fd, since in self._strangers.items() if now - since < 2 * HANDSHAKE_SECONDS]
        self._strangers = {fd: self._strangers[fd] for fd in new}
        random.shuffle(new)
        for silent in (True, False):
            for fd in new:
                if len(self._strangers) <= self._most:
                    return
                if fd in self._strangers and self._turn_away(fd, silent):
                    del self._strangers[fd]

    def _turn_away(self, fd: int, silent: bool) -> bool:
        """End a connection, ``silent`` ones only or any; ZeroMQ closes it then. Whether it ends."""
        try:
            # From now on it is this connection, whatever gets its number meanwhile. (To a number
            # that we have: where none is left, no new one is to be had.)
            os.dup2(fd, self._held, inheritable=False)
            connection = socket.socket(fileno=self._held)
            try:
                if silent and _received(connection) >= SIGNATURE:
                    return False
                if self.address.endswith(f":{connection.getsockname()[1]}"):  # and nobody else's
                    connection.shutdown(socket.SHUT_RDWR)
                    self._say()
            finally:
                connection.detach()
        except OSError:  # it has just gone
            pass
        finally:
            os.dup2(self._nothing, self._held, inheritable=False)
        return True

    def _say(self) -> None:
        now = time.monotonic()
        if now >= self._silent_until:
            print(
                f"sfm: more than {self._most} connections to {self.address} have not shown the "
                f"world's key. Some of them are closed; who is connected already does not notice. "
                f"Somebody who can reach this address opens them",
                file=sys.stderr,
            )
        self._silent_until = now + SAY_EVERY

    def close(self) -> None:
        """Let nobody in any more; before the ROUTER is closed."""
        self._router.disable_monitor()
        self._monitor.close(0)
        self._gate.socket.close()
        os.close(self._held)
        os.close(self._nothing)


def _received(connection: socket.socket) -> int:
    """How many bytes have come through a TCP connection; many, where the kernel does not say."""
    about = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    if len(about) < _RECEIVED_AT + 8:
        return SIGNATURE
    return int.from_bytes(about[_RECEIVED_AT : _RECEIVED_AT + 8], sys.byteorder)
