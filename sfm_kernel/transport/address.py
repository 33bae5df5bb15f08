"""The address at which a process can be reached, and the key that makes it a member.

Anybody who reaches the address can open connections. This module bounds how many; the core bounds
what one of them can send before it has shown the key.
"""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Mapping

from sfm_kernel._native import MAX_MEMBERS
from sfm_kernel.errors import WorldError

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
"""Names of this machine for its own programs."""
KEY_BYTES = 32
MOST_DESCRIPTORS = 1 << 16


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


def listening_ip(local: bool) -> str:
    """The address at which this process listens; ``local``: for members of this machine."""
    return "127.0.0.1" if local else own_ip()


def environment_key(environment: Mapping[str, str]) -> bytes:
    """The world's key in ``SFM_KEY``; empty if unset. Raises WorldError if not hexadecimal."""
    try:
        return bytes.fromhex(environment.get("SFM_KEY", ""))
    except ValueError:
        raise WorldError("SFM_KEY is not hexadecimal; copy it from the server's output") from None


def most_strangers() -> int:
    """The number of open connections that have not shown the key yet, at most.

    All members of a world may connect at once; the other descriptors are for other uses.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_MEMBERS if soft == resource.RLIM_INFINITY else min(MAX_MEMBERS, max(4, soft // 4))


def raise_descriptors() -> None:
    """Raise this process's limit of descriptors, to ``MOST_DESCRIPTORS`` at most."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
