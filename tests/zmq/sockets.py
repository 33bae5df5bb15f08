"""Sockets disturbed as a network would disturb them, and counts of a process's sockets."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import stat
import struct
from collections.abc import Iterator
from urllib.parse import urlsplit

import psutil

from sfm_kernel import Endpoint

SO_DETACH_FILTER = 27


def place(address: str) -> tuple[str, int]:
    """The IP and the port of "tcp://IP:port"."""
    parts = urlsplit(address)
    assert parts.hostname is not None and parts.port is not None
    return parts.hostname, parts.port


def connect(address: str) -> socket.socket:
    return socket.create_connection(place(address))


def port(endpoint: Endpoint) -> int:
    """The port on which the endpoint listens."""
    (entry,) = (member for member in endpoint.members() if member.uid == endpoint.uid)
    return place(entry.address)[1]


def ports(sock: socket.socket) -> set[int]:
    """The ports of both its ends."""
    found = {sock.getsockname()[1]}
    with contextlib.suppress(OSError):
        found.add(sock.getpeername()[1])
    return found


def own_sockets(*wanted: int) -> Iterator[socket.socket]:
    """Duplicates of this process's sockets that have one of these ports at either end."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(fd).st_mode):
                continue
            with socket.socket(fileno=os.dup(fd)) as sock:
                if sock.family == socket.AF_INET and ports(sock) & set(wanted):
                    yield sock


def is_listening(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1


def cut(*wanted: int) -> int:
    """Break this process's connections to and from these ports; return their number."""
    count = 0
    for sock in own_sockets(*wanted):
        if not is_listening(sock):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
                count += 1
    return count


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("jt", ctypes.c_uint8),
        ("jf", ctypes.c_uint8),
        ("k", ctypes.c_uint32),
    )


def deafen(*wanted: int, listening: bool = True) -> None:
    """Let the kernel drop whatever comes for this process at these ports, connections and attempts.

    It acknowledges nothing any more, and refuses nothing: the machine is as good as unplugged.
    Without ``listening``, new connections can still be made.
    """
    drop = _Instruction(0x06, 0, 0, 0)  # BPF_RET: keep no byte of the packet
    program = struct.pack("@HP", 1, ctypes.addressof(drop))
    for sock in own_sockets(*wanted):
        if listening or not is_listening(sock):
            sock.setsockopt(socket.SOL_SOCKET, 26, program)  # SO_ATTACH_FILTER


def hear_again(*wanted: int, connected: bool = True) -> None:
    """Undo ``deafen``; without ``connected`` for new connections only."""
    for sock in own_sockets(*wanted):
        with contextlib.suppress(OSError):
            if connected or is_listening(sock):
                sock.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)


def listening() -> list[str]:
    """The IP addresses at which this process waits for TCP connections."""
    found = psutil.Process().net_connections("tcp")
    return [conn.laddr.ip for conn in found if conn.status == psutil.CONN_LISTEN]


def attempts(*wanted: int) -> Iterator[int]:
    """The ports from which this process tries to connect to these, just now."""
    for conn in psutil.Process().net_connections("tcp"):
        if conn.status == psutil.CONN_SYN_SENT and conn.raddr and conn.raddr.port in wanted:
            yield conn.laddr.port


def connections(*wanted: int) -> int:
    """How many connections this process has accepted at these ports."""
    found = psutil.Process().net_connections("tcp")
    accepted = (conn for conn in found if conn.status == psutil.CONN_ESTABLISHED)
    return sum(conn.laddr.port in wanted for conn in accepted)


def unread(port: int) -> int:
    """The bytes that the processes of this machine have yet to read at this port."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return sum(int(row[4].partition(":")[2], 16) for row in rows if int(row[1][9:], 16) == port)
