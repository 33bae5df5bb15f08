"""The client of a DirectoryServer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Self

from sfm_kernel import _native
from sfm_kernel._native import JoinRequest, Member
from sfm_kernel.directory.client import Client
from sfm_kernel.transport.base import Changes, Gateway
from sfm_kernel.transport.closing import Closing
from sfm_kernel.transport.keys import KeyPair, libraries


class RemoteDirectory(_native.RemoteDirectory, Closing):
    """The directory of a world of several machines; see ``transport.base.Directory``. Thread-safe.

    When the server has ended, lookups raise WorldGone; ``alive`` keeps its last answer, so that
    processes that know each other go on. The segment of a process on this machine shows its death
    at once and without the server. The server sees the death of another machine's process at once,
    or learns it within 1 s from that machine's relay; within 5 s it sees that the process no longer
    answers, which is no proof of death.

    Once this process has joined, the server publishes every change to it. Cost: a request is one
    round trip, 0.3 ms on one machine; without a subscription, ``alive`` asks at most every 0.1 s.

    Raises:
        WorldGone: the server does not answer, or keeps another world.
        WorldAccess: the key is not the server's; or the folder on this machine is not private.
    """

    def __new__(cls, world: str, url: str, key: bytes) -> Self:
        return super().__new__(cls, libraries(), world, url, key, _tell)

    def __init__(self, world: str, url: str, key: bytes) -> None:
        self.client = Client.of(self.server)

    @property
    def pair(self) -> KeyPair:
        return self.client.pair

    def join(self, **request: Any) -> Member:
        """Register; see ``Directory.join``. Also removes dead processes' files on this machine."""
        return self._join(JoinRequest(**request, public=self.pair.public.hex()))

    def gateways(self) -> list[Gateway]:
        """The gateways of all sites, oldest first. Raises as ``members``."""
        return [Gateway(*entry) for entry in self._gateways()]

    def watch(self, changed: Callable[[Changes], None]) -> None:
        def tell(
            gateways: list[tuple[str, str, str, str]],
            members: list[Member],
            departed: dict[str, str],
        ) -> None:
            changed(Changes([Gateway(*entry) for entry in gateways], members, departed))

        self._watch(tell)

    def reports(self) -> dict[str, dict[str, Any]]:
        """The last report (``status``) of each gateway, by its uid.

        The server adds ``"age"``: seconds since the report. Raises as ``members``.
        """
        reports: dict[str, dict[str, Any]] = self.client.ask("reports")["reports"]
        return reports


def _tell(text: str) -> None:
    print(f"sfm: {text}", file=sys.stderr)
