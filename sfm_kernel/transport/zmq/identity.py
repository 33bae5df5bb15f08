"""How a process shows itself: where it is reached, and the key that makes it a member."""

from __future__ import annotations

import os
import socket

from sfm_kernel.errors import WorldAccess, WorldError

SHORTEST_KEY = 16
BACKLOG = 1024
"""Connections that wait while the process is stopped or holds the GIL; the kernel may allow less.
More would look like an unreachable process."""


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
    """A listening socket on a free port, and its ZeroMQ address; ``local``: for this machine."""
    ip = "127.0.0.1" if local else own_ip()
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1" if ip == "127.0.0.1" else "0.0.0.0", 0))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener, f"tcp://{ip}:{listener.getsockname()[1]}"


def check_key(key: bytes) -> None:
    """Raise WorldAccess if the key is empty, or so short that it could be guessed."""
    if len(key) < SHORTEST_KEY:
        raise WorldAccess(
            f"the world's key has {len(key)} bytes, and {SHORTEST_KEY} are needed: without a "
            f"secret anybody could join and run code here. With ipyparallel's CURVE, set "
            f"IPP_SESSION_KEY too"
        )


def encrypts(local: bool) -> bool:
    """Whether connections are encrypted. They are, unless ``SFM_ZMQ_CURVE`` is 0.

    That is a benchmark's switch, to be set for every process of a world: it shows the price of
    encryption. Members still have to show a password that is derived from the world's key, but
    who can read the wire can read it, too.

    Args:
        local: all members are on this machine, and use its loopback interface.
    Raises:
        WorldError: it is 0 for a world that may span machines.
    """
    if os.environ.get("SFM_ZMQ_CURVE", "1") != "0":
        return True
    if local:
        return False
    raise WorldError(
        "SFM_ZMQ_CURVE=0 is for worlds of one machine: between machines everybody could read the "
        "messages, and the password. Unset it"
    )
