"""The client of a DirectoryServer."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from sfm_kernel.directory.cleaning import sweep
from sfm_kernel.directory.client import ANSWER_SECONDS, Client
from sfm_kernel.directory.folders import WorldFolder, is_alive
from sfm_kernel.directory.table import JoinRequest
from sfm_kernel.errors import EndpointClosed, WorldAccess, WorldGone
from sfm_kernel.transport.address import check_key
from sfm_kernel.transport.base import Changes, Gateway, Member
from sfm_kernel.transport.closing import Closing
from sfm_kernel.transport.keys import KeyPair

FRESH_SECONDS = 0.1
"""The most seconds since an answer about living processes before ``alive`` asks again."""
PATIENCE_SECONDS = 0.5
SILENCE_SECONDS = 2.0
"""Seconds that ``alive`` waits for a silent server, and before it asks that server again."""


class RemoteDirectory(Closing):
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

    def __init__(self, world: str, url: str, key: bytes) -> None:
        check_key(key)  # before a folder is made
        self._taking = threading.Lock()
        self._version = -1
        self._members: list[Member] = []
        self._departed: list[Member] = []
        self._gateways: list[Gateway] = []
        self._living: frozenset[str] = frozenset()
        self._expelled: frozenset[str] = frozenset()
        self._own: set[str] = set()
        self._is_out = False
        self._asked_at = 0.0
        self._folder = WorldFolder(world, create=True)
        try:
            self._client = Client(world, url, key)
        except BaseException:
            self._folder.close()
            raise
        self._is_subscribed = False
        self._watcher: Callable[[Changes], None] | None = None

    @property
    def world(self) -> str:
        return self._folder.world

    @property
    def folder(self) -> str:
        return self._folder.path

    @property
    def key(self) -> bytes:
        return self._client.key

    @property
    def pair(self) -> KeyPair:
        return self._client.pair

    @property
    def client(self) -> Client:
        return self._client

    def join(self, **request: Any) -> Member:
        """Register; see ``Directory.join``. Also removes dead processes' files on this machine."""
        newcomer = JoinRequest(**request, public=self.pair.public.hex()).to_json()
        while "again" in (answer := self._client.ask("join", request=newcomer)):
            time.sleep(0.02)
        member = Member.from_json(answer["member"])
        self._own.add(member.uid)
        self._take(answer)
        if not self._is_subscribed:
            self._is_subscribed = True
            self._client.subscribe(self._on_update)
        with self._folder.locked():
            sweep(self.folder, keep={member.uid for member in self._members})
        return member

    def leave(self, member: Member) -> None:
        """See ``Directory.leave``; does nothing if the server has ended."""
        try:
            while "again" in self._client.ask("leave", PATIENCE_SECONDS, uid=member.uid):
                time.sleep(0.02)
        except (WorldGone, EndpointClosed):
            pass
        except WorldAccess:
            if member.uid not in self._own:  # this process may be out already
                raise

    def members(self) -> list[Member]:
        self._refresh(ANSWER_SECONDS)
        return list(self._members)

    def listed(self) -> list[Member]:
        """The entries in the server's last update, which may be slightly out of date."""
        self._refresh_unless_subscribed()
        return list(self._members)

    def departed(self) -> list[Member]:
        self._refresh_unless_subscribed()
        return list(self._departed)

    def gateways(self) -> list[Gateway]:
        """The gateways of all sites, oldest first. Raises as ``members``."""
        self._refresh_unless_subscribed()
        return list(self._gateways)

    def watch(self, changed: Callable[[Changes], None]) -> None:
        with self._taking:
            self._watcher = changed
            changed(Changes(list(self._gateways), list(self._members), {}))

    def reports(self) -> dict[str, dict[str, Any]]:
        """The last report (``status``) of each gateway, by its uid.

        The server adds ``"age"``: seconds since the report. Raises as ``members``.
        """
        reports: dict[str, dict[str, Any]] = self._client.ask("reports")["reports"]
        return reports

    def alive(self, member: Member) -> bool:
        """Whether it runs and has not left; while the server is silent, its last answer."""
        if self._is_out or member.uid in self._expelled:
            return False
        segment = os.path.join(self.folder, f"{member.uid}.seg")
        if member.segment == segment and os.path.exists(segment):
            # Such a name is unique in the world: it is a process of this machine.
            return is_alive(segment)
        if not self._is_subscribed and time.monotonic() - self._asked_at > FRESH_SECONDS:
            try:
                self._refresh(PATIENCE_SECONDS)
            except (WorldGone, EndpointClosed):
                self._asked_at = time.monotonic() + SILENCE_SECONDS
        return member.uid in self._living

    def why_departed(self, member: Member) -> str:
        return self._why(member.uid)

    def _why(self, uid: str) -> str:
        if self._is_out:
            return "(this process was put out of the world)"
        return "(it was put out of the world)" if uid in self._expelled else ""

    def _refresh(self, limit: float) -> None:
        if self._is_out:
            raise WorldAccess(
                f"this process was put out of world {self.world!r}: ask those who have the world's "
                f"key. To come back, it joins anew"
            )
        self._take(self._client.ask("state", limit, version=self._version))
        self._asked_at = time.monotonic()

    def _refresh_unless_subscribed(self) -> None:
        if not self._is_subscribed:
            self._refresh(ANSWER_SECONDS)

    def _on_update(self, answer: dict[str, Any] | None) -> None:
        """Take in an update of the server, in the subscription's thread; None: it is silent."""
        self._is_subscribed = answer is not None
        if answer is not None:
            self._take(answer)

    def _take(self, answer: dict[str, Any]) -> None:
        """Take in a state, unless a newer one was taken in before."""
        with self._taking:  # never held during a request: the subscription's thread reads answers
            if "members" not in answer or answer["version"] < self._version:
                return
            self._members = [Member.from_json(member) for member in answer["members"]]
            had_left = {member.uid for member in self._departed}
            self._departed = [Member.from_json(member) for member in answer["departed"]]
            gateways = [Gateway.from_json(gateway) for gateway in answer["gateways"]]
            self._gateways = gateways
            lived = self._living
            self._living = frozenset(member.uid for member in self._members) - set(answer["dead"])
            self._version = answer["version"]
            self._expelled = frozenset(answer["expelled"])
            if self._expelled & self._own and not self._is_out:
                self._is_out = True
                print(f"sfm: this process was put out of world {self.world!r}", file=sys.stderr)
            if self._is_out:
                self._living = frozenset()
            # Some processes may have joined and left since the last state.
            ended = (lived | {member.uid for member in self._departed}) - had_left - self._living
            if self._watcher is not None:
                why = {uid: self._why(uid) for uid in ended}
                self._watcher(Changes(list(gateways), list(self._members), why))

    def close(self) -> None:
        """Release the connection and the folder. Idempotent; does not leave."""
        self._folder.close()
        self._client.close()
