"""The client of a DirectoryServer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from sfm_kernel.directory.cleaning import sweep
from sfm_kernel.directory.client import ANSWER_SECONDS, Client
from sfm_kernel.directory.folders import WorldFolder, is_alive
from sfm_kernel.directory.table import JoinRequest
from sfm_kernel.errors import EndpointClosed, WorldGone
from sfm_kernel.transport.address import check_key
from sfm_kernel.transport.base import Gateway, Member, Name

FRESH_SECONDS = 0.1
"""How old an answer about who lives may be."""
PATIENCE_SECONDS = 0.5
SILENCE_SECONDS = 2.0
"""``alive`` waits so long for a silent server, and then asks it again only after so long."""


class RemoteDirectory:
    """Who is in a world of several machines; see ``transport.base.Directory``. Thread-safe.

    When the server is gone, lookups raise WorldGone; ``alive`` keeps the last word, so that those
    who know each other go on. Whether a process of this machine lives is seen at its segment, at
    once and without the server; of another machine's process the server sees its death at once, or
    hears within 1 s of it from that machine's relay, and sees within 5 s that nobody answers there
    any more, which is no proof of death.

    Once it has joined, the server tells it of every change. Cost: a request is
    one round trip, 0.3 ms on one machine; while the server tells nothing, ``alive`` asks at most
    every 0.1 s.

    Raises:
        WorldGone: the server does not answer, or keeps another world.
        WorldAccess: the key is not the server's; or the folder here is not private.
    """

    def __init__(self, world: str, url: str, key: bytes) -> None:
        check_key(key)
        self._taking = threading.Lock()
        self._version = -1
        self._members: list[Member] = []
        self._departed: list[Member] = []
        self._gateways: list[Gateway] = []
        self._living: frozenset[str] = frozenset()
        self._asked_at = 0.0
        self._folder = WorldFolder(world, create=True)
        try:
            self._client = Client(world, url, key)
        except BaseException:
            self._folder.close()
            raise
        self._is_told = False
        self._watcher: Callable[[list[Gateway], list[str]], None] | None = None

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
    def client(self) -> Client:
        return self._client

    def join(
        self,
        *,
        uid: str,
        pid: int,
        host: str,
        segment: str,
        address: str,
        name: Name | None = None,
        rank: int | None = None,
        guest: bool = False,
        names: tuple[str, ...] = (),
        info: dict[str, Any] | None = None,
        site: str = "",
    ) -> Member:
        """Register; see ``Directory.join``. Also removes what the dead left on this machine."""
        asked = name, rank, guest, tuple(names), info or {}, site
        request = JoinRequest(uid, pid, host, segment, address, *asked)
        answer = self._client.ask("join", request=request.to_json())
        while "again" in answer:
            time.sleep(0.02)
            answer = self._client.ask("join", request=request.to_json())
        member = Member.from_json(answer["member"])
        self._take(answer)
        if not self._is_told:
            self._is_told = True
            self._client.subscribe(self._told)
        with self._folder.locked():
            sweep(self.folder, keep={one.uid for one in self._members})
        return member

    def leave(self, member: Member) -> None:
        """Take the entry out; harmless if it is not there or the server is gone."""
        try:
            self._client.ask("leave", PATIENCE_SECONDS, uid=member.uid)
        except (WorldGone, EndpointClosed):
            pass

    def members(self) -> list[Member]:
        """All entries by slot, the dead that nobody replaced among them."""
        self._refresh(ANSWER_SECONDS)
        return list(self._members)

    def listed(self) -> list[Member]:
        """The entries as the server has told them last, which may be a moment ago."""
        if not self._is_told:
            return self.members()
        return list(self._members)

    def departed(self) -> list[Member]:
        """Who left lately, by name the last one."""
        if not self._is_told:
            self._refresh(ANSWER_SECONDS)
        return list(self._departed)

    def gateways(self) -> list[Gateway]:
        """The gateways of all sites that listen, oldest first. Raises as ``members``."""
        if not self._is_told:
            self._refresh(ANSWER_SECONDS)
        return list(self._gateways)

    def watch(self, changed: Callable[[list[Gateway], list[str]], None]) -> None:
        """Have ``changed`` called when there are other gateways, or somebody has left or died."""
        self._watcher = changed
        changed(list(self._gateways), [])

    def reports(self) -> dict[str, dict[str, Any]]:
        """What each gateway has told of itself in the last seconds (``status``), by its uid.

        ``"age"`` has been added: seconds since it told. Raises as ``members``.
        """
        reports: dict[str, dict[str, Any]] = self._client.ask("reports")["reports"]
        return reports

    def alive(self, member: Member) -> bool:
        """Whether it runs and has not left; while the server is silent, what it said last."""
        own = os.path.join(self.folder, f"{member.uid}.seg")
        if member.segment == own and os.path.exists(own):
            # Such a name is unique in the world: it is a process of this machine.
            return is_alive(own)
        if not self._is_told and time.monotonic() - self._asked_at > FRESH_SECONDS:
            try:
                self._refresh(PATIENCE_SECONDS)
            except (WorldGone, EndpointClosed):
                self._asked_at = time.monotonic() + SILENCE_SECONDS
        return member.uid in self._living

    def _refresh(self, limit: float) -> None:
        self._take(self._client.ask("state", limit, version=self._version))
        self._asked_at = time.monotonic()

    def _told(self, answer: dict[str, Any] | None) -> None:
        """The server has told of a change, in the subscription's thread; or it is silent."""
        self._is_told = answer is not None
        if answer is not None:
            self._take(answer)

    def _take(self, answer: dict[str, Any]) -> None:
        """Take a state in, unless a newer one was taken in before."""
        with self._taking:  # never held while an answer is waited for: the teller brings that, too
            self._take_newer(answer)

    def _take_newer(self, answer: dict[str, Any]) -> None:
        if "members" not in answer or answer["version"] < self._version:
            return
        self._members = [Member.from_json(one) for one in answer["members"]]
        had_left = {one.uid for one in self._departed}
        self._departed = [Member.from_json(one) for one in answer["departed"]]
        gateways = [Gateway.from_json(one) for one in answer["gateways"]]
        before, self._gateways = self._gateways, gateways
        were = self._living
        self._living = frozenset(one.uid for one in self._members) - set(answer["dead"])
        self._version = answer["version"]
        # Some have come and left since the last state.
        gone = (were | {one.uid for one in self._departed}) - had_left - self._living
        if self._watcher is not None and (gone or gateways != before):
            self._watcher(list(gateways), list(gone))

    def close(self) -> None:
        """Release the connection and the folder. Idempotent; does not leave."""
        self._folder.close()
        self._client.close()

    def __enter__(self) -> RemoteDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
