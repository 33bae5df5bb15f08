"""A network namespace's devices, addresses and routes: does what ``ip`` does, without that program.

An object changes the namespace in which it was made.
Source: rtnetlink(7), and the kernel's include/uapi/linux/{if_link,rtnetlink,veth}.h.
"""

from __future__ import annotations

import os
import socket
import struct

_NEWLINK, _NEWADDR, _NEWROUTE = 16, 20, 24
_ERROR = 2
_REQUEST_ACK, _CREATE_EXCL = 1 | 4, 0x400 | 0x200

_IFNAME, _MASTER, _TXQLEN, _LINKINFO, _NET_NS_FD = 3, 10, 13, 18, 28  # IFLA_
_KIND, _DATA, _VETH_PEER = 1, 2, 1
_ADDRESS, _LOCAL = 1, 2  # IFA_
_DST, _OIF, _GATEWAY, _METRICS, _CC_ALGO = 1, 4, 5, 8, 16  # RTA_, RTAX_
_NESTED = 0x8000
_UP = 1
_TABLE_MAIN, _PROTOCOL_BOOT, _SCOPE_UNIVERSE, _SCOPE_LINK, _UNICAST = 254, 3, 0, 253, 1

_HEADER = struct.Struct("=IHHII")
_LINK = struct.Struct("=BxHiII")


class Netlink:
    """Changes one network namespace. A method that raises OSError has changed nothing."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._number = 0

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def add_bridge(self, name: str) -> None:
        """A switch within this machine; down at first."""
        info = _attribute(_LINKINFO | _NESTED, _text(_KIND, "bridge"))
        self._ask(_NEWLINK, _CREATE_EXCL, _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, name) + info)

    def add_veth(self, name: str, bridge: str, peer: str, namespace: int) -> None:
        """A cable from the bridge to a new device ``peer`` of another namespace (descriptor)."""
        other = _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, peer)
        other += _attribute(_NET_NS_FD, struct.pack("=I", namespace))
        data = _attribute(_DATA | _NESTED, _attribute(_VETH_PEER | _NESTED, other))
        info = _attribute(_LINKINFO | _NESTED, _text(_KIND, "veth") + data)
        master = _attribute(_MASTER, struct.pack("=I", socket.if_nametoindex(bridge)))
        body = _LINK.pack(0, 0, 0, 0, 0) + _text(_IFNAME, name) + master + info
        self._ask(_NEWLINK, _CREATE_EXCL, body)

    def up(self, name: str, queue: int | None = None) -> None:
        """Switch a device on; ``queue``: packets that may wait in it."""
        body = _LINK.pack(0, 0, socket.if_nametoindex(name), _UP, _UP)
        if queue is not None:
            body += _attribute(_TXQLEN, struct.pack("=I", queue))
        self._ask(_NEWLINK, 0, body)

    def add_address(self, name: str, address: str, prefix: int) -> None:
        """Give a device an IPv4 address in a network of ``prefix`` bits."""
        packed = socket.inet_aton(address)
        body = struct.pack("=BBBBi", socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(name))
        body += _attribute(_LOCAL, packed) + _attribute(_ADDRESS, packed)
        self._ask(_NEWADDR, _CREATE_EXCL, body)

    def add_route(
        self,
        network: str,
        prefix: int,
        *,
        gateway: str | None = None,
        device: str | None = None,
        algorithm: str | None = None,
    ) -> None:
        """A route to ``network``; TCP connections over it use ``algorithm`` by default."""
        scope = _SCOPE_LINK if gateway is None else _SCOPE_UNIVERSE
        body = struct.pack(
            "=BBBBBBBBI", socket.AF_INET, prefix, 0, 0, _TABLE_MAIN, _PROTOCOL_BOOT, scope,
            _UNICAST, 0,
        )  # fmt: skip
        body += _attribute(_DST, socket.inet_aton(network))
        if gateway is not None:
            body += _attribute(_GATEWAY, socket.inet_aton(gateway))
        if device is not None:
            body += _attribute(_OIF, struct.pack("=I", socket.if_nametoindex(device)))
        if algorithm is not None:
            body += _attribute(_METRICS | _NESTED, _text(_CC_ALGO, algorithm))
        self._ask(_NEWROUTE, _CREATE_EXCL, body)

    def _ask(self, kind: int, flags: int, body: bytes) -> None:
        self._number += 1
        length = _HEADER.size + len(body)
        header = _HEADER.pack(length, kind, _REQUEST_ACK | flags, self._number, 0)
        self._socket.send(header + body)
        while True:
            answer = self._socket.recv(65536)
            _, kind, _, number, _ = _HEADER.unpack_from(answer)
            if number == self._number and kind == _ERROR:
                (code,) = struct.unpack_from("=i", answer, _HEADER.size)
                if code:
                    raise OSError(-code, os.strerror(-code))
                return


def _attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")
