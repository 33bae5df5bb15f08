"""The clients that a directory server admits, by the public halves of their key pairs.

Each client has a pair of its own, which the server does not know yet when the client comes. So the
client first connects with the pair that all who have the world's key derive from it, as a proof of
the key. It says "hello" with its own public half, and connects with its own pair from then on: the
server knows at each request which client asks. Gateways do the same with their key.

(The proof could come with the first request, on the client's own connection. But from whomever
ZeroMQ lets in it takes a message of any number of frames into memory, so strangers are stopped
before they can send one.)
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum

from sfm_kernel._native import MAX_MEMBERS, gateway_key
from sfm_kernel.errors import WorldAccess
from sfm_kernel.transport.keys import KeyPair

PUBLIC = re.compile(r"[0-9a-f]{64}")

MOST = 64 * MAX_MEMBERS
"""The most clients that are known. The one that has asked nothing for longest is forgotten beyond
that, unless it is a member."""

Kind = Enum("Kind", "MEMBER GATEWAY")
"""What the key opens that a client has shown: all, or what gateways may ask."""


class Clients:
    """The clients that the server admits. For one thread; a public half is 64 hexadecimal digits.

    Args:
        key: the world's; raises WorldAccess if it is empty or short.
    """

    def __init__(self, key: bytes) -> None:
        self.change_key(key)
        self._admitted: dict[str, Kind] = {}
        self._expelled: set[str] = set()

    def change_key(self, key: bytes) -> None:
        """Ask newcomers for this key of the world's from now on; clients that are admitted stay.

        Raises WorldAccess if it is empty or short; nothing has changed then.
        """
        gateways = KeyPair.of_newcomers(gateway_key(key), gateways=True)
        self._newcomers = {
            KeyPair.of_newcomers(key).public.hex(): Kind.MEMBER,
            gateways.public.hex(): Kind.GATEWAY,
        }

    def may_connect(self, public: str) -> bool:
        """Whether who has this pair may connect."""
        return public in self._newcomers or public in self._admitted

    def newcomer(self, public: str) -> Kind | None:
        """What this pair opens to those who have derived it from a key; None for a client's own."""
        return self._newcomers.get(public)

    def kind(self, public: str) -> Kind:
        """What a request may ask that comes from this client.

        Raises WorldAccess if it is not admitted.
        """
        self._check_not_expelled(public)
        if public not in self._admitted:
            raise WorldAccess("this client has not shown the world's key: it has to say hello")
        kind = self._admitted[public] = self._admitted.pop(public)  # the last is forgotten last
        return kind

    def _check_not_expelled(self, public: str) -> None:
        if public in self._expelled:
            raise WorldAccess("a process with this key was put out of the world")

    def expel(self, public: str) -> None:
        """Admit a client no longer, and never again."""
        self._admitted.pop(public, None)
        self._expelled.add(public)

    def admit(self, public: str, kind: Kind, members: Collection[str] = ()) -> None:
        """Admit a client from now on. ``members``: those that are not forgotten.

        Raises ValueError, TypeError if ``public`` is none; WorldAccess if it was expelled.
        """
        if not PUBLIC.fullmatch(public):
            raise ValueError("a public key has 64 hexadecimal digits")
        self._check_not_expelled(public)
        self._admitted.setdefault(public, kind)
        if len(self._admitted) > MOST:
            del self._admitted[next(known for known in self._admitted if known not in members)]
