"""How a process shows itself: where it is reached, and the key that makes it a member."""

from __future__ import annotations

import contextlib
import errno
import os
import socket

from sfm_kernel.errors import WorldAccess
from sfm_kernel.transport.zmq.limits import most_strangers

SHORTEST_KEY = 16
BACKLOG = 1024
"""Connections that wait while the process is stopped or holds the GIL; the kernel may allow less.
More would look like an unreachable process. Over TCP not more than may stand in front of the door:
ZeroMQ accepts all that wait at once."""
LONGEST_PATH = 107
"""Bytes of a Unix socket's name."""


def own_ip() -> str:
    """This machine's address for others: ``$SFM_HOST_IP``, else the one of the default route.

    Without a network it is 127.0.0.1. Nothing is sent: connecting a datagram socket only asks
    the routing table (192.0.2.1 is reserved for documentation).
    """
    if chosen := os.environ.get("SFM_HOST_IP"):
        return chosen
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def listen(local: bool) -> tuple[socket.socket, str]:
    """A listening socket on a free port of the address that is announced, and that address.

    ``local``: of this machine's loopback interface, for members of this machine.
    """
    ip = "127.0.0.1" if local else own_ip()
    listener = _listening(socket.AF_INET)
    try:
        try:
            listener.bind((ip, 0))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            # A router in front of this machine has the address, and leads here.
            listener.bind(("0.0.0.0", 0))
        listener.listen(min(BACKLOG, most_strangers()))
    except BaseException:
        listener.close()
        raise
    return listener, f"tcp://{ip}:{listener.getsockname()[1]}"


def _listening(family: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setblocking(False)
    return listener


class Room:
    """A world's closed folder, as the place of its members' sockets on this machine.

    Nobody but the user can enter it: who connects there is a member, as far as one user's own
    processes can be told apart.
    """

    def __init__(self, folder: str) -> None:
        self._folder, self._fd = folder, -1

    def listen(self, uid: str) -> tuple[socket.socket, str]:
        """A listening socket in the folder, and its address."""
        address = f"ipc://{os.path.join(self._folder, uid)}.sock"
        listener = _listening(socket.AF_UNIX)
        try:
            listener.bind(self.endpoint(address).removeprefix("ipc://"))
            listener.listen(BACKLOG)
        except BaseException:
            listener.close()
            raise
        return listener, address

    def endpoint(self, address: str) -> str:
        """How this process reaches an address: the folder's path may be longer than a socket's."""
        file = os.path.basename(address)
        path = os.path.join(self._folder, file)
        if len(os.fsencode(path)) > LONGEST_PATH:
            if self._fd < 0:
                self._fd = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{self._fd}/{file}"
        return f"ipc://{path}"

    def close(self, uid: str) -> None:
        """Remove the socket. What is connected stays so."""
        with contextlib.suppress(OSError):  # the world is gone
            os.unlink(os.path.join(self._folder, f"{uid}.sock"))
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def check_key(key: bytes) -> None:
    """Raise WorldAccess if the key is empty, or so short that it could be guessed."""
    if len(key) < SHORTEST_KEY:
        raise WorldAccess(
            f"the world's key has {len(key)} bytes, and {SHORTEST_KEY} are needed: without a "
            f"secret anybody could join and run code here. With ipyparallel's CURVE, set "
            f"IPP_SESSION_KEY too"
        )
