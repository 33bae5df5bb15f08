"""The connections to a class: a new one always finds a place, whoever holds the others.

A connection is *unproven* until a request on it has shown a token: while its head or its TLS
handshake is incomplete, while it is idle, and while it does not read its answer. Unproven
connections of one address have a part of the places only, and the oldest of them goes when another
one comes. Those that have shown a token are not bounded by address: behind a proxy, a whole class
has one.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Protocol


class Closable(Protocol):
    """What a connection must be able to do."""

    def close(self) -> Any:
        """End it."""


class Connections:
    """The open connections of a server, and the rule for which one ends to make room.

    Args:
        most: the most connections at a time.
        from_one: the most unproven connections of one address. More than are accepted at a time
            (128), so that a new one is read before it can be the oldest.
    """

    def __init__(self, most: int, from_one: int) -> None:
        self._most, self._from_one = most, from_one
        self._unproven: dict[Closable, str] = {}  # with their addresses, the oldest first
        self._proven: dict[Closable, None] = {}  # the one that was used longest ago first

    def add(self, connection: Closable, host: str) -> None:
        """Take a new connection; if there are too many, end the one that matters least."""
        address = _network(host)
        same = [other for other, its in self._unproven.items() if its == address]
        if len(same) >= self._from_one:
            self._end(same[0])
        elif len(self._unproven) + len(self._proven) >= self._most:
            self._end(next(iter(self._unproven or self._proven)))
        self._unproven[connection] = address

    def prove(self, connection: Closable) -> None:
        """Note that a request on a connection has shown a token. (It may have ended.)"""
        was_open = self._unproven.pop(connection, None) or connection in self._proven
        self._proven.pop(connection, None)
        if was_open:
            self._proven[connection] = None

    def discard(self, connection: Closable) -> None:
        """Forget a connection that has ended. Harmless when repeated."""
        self._unproven.pop(connection, None)
        self._proven.pop(connection, None)

    def _end(self, connection: Closable) -> None:
        self.discard(connection)
        connection.close()


def _network(host: str) -> str:
    """What one client has: an address, or 64 bits of an IPv6 address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:  # a Unix socket
        return host
    return host if address.version == 4 else address.packed[:8].hex()
