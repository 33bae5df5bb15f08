"""The client of a DirectoryServer."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from sfm_kernel.directory.cleaning import sweep
from sfm_kernel.directory.client import ANSWER_SECONDS, Client
from sfm_kernel.directory.elsewhere import Elsewhere
from sfm_kernel.directory.folders import WorldFolder, is_alive
from sfm_kernel.directory.table import Wish
from sfm_kernel.errors import EndpointClosed, WorldGone
from sfm_kernel.states import State
from sfm_kernel.transport.base import Member, Name
from sfm_kernel.transport.zmq.identity import check_key

FRESH_SECONDS = 0.1
"""How old an answer about who lives may be."""
PATIENCE_SECONDS = 0.5
SILENCE_SECONDS = 2.0
"""``alive`` waits so long for a silent server, and then asks it again only after so long."""


class RemoteDirectory:
    """Who is in a world of several machines; see ``transport.base.Directory``. Thread-safe.

    When the server is gone, lookups raise WorldGone; ``alive`` keeps the last word, so that those
    who know each other go on. Whether a process of this machine lives is seen at its segment, at
    once and without the server; of another machine's process the server sees its death at once,
    and within 10 s that the whole machine vanished.

    Cost: a request is one round trip, 0.3 ms on one machine; ``alive`` asks at most every 0.1 s.

    Raises:
        WorldGone: the server does not answer, or keeps another world.
        WorldAccess: the key is not the server's; or the folder here is not private.
    """

    def __init__(self, world: str, url: str, key: bytes) -> None:
        check_key(key)
        self._refreshing = threading.Lock()
        self._version = -1
        self._members: list[Member] = []
        self._departed: list[Member] = []
        self._living: frozenset[str] = frozenset()
        self._asked_at = 0.0
        self._folder = WorldFolder(world, create=True)
        try:
            self._client = Client(world, url, key)
        except BaseException:
            self._folder.close()
            raise
        self._elsewhere = Elsewhere(self._client)

    @property
    def world(self) -> str:
        return self._folder.world

    @property
    def folder(self) -> str:
        return self._folder.path

    @property
    def key(self) -> bytes:
        return self._client.key

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
    ) -> Member:
        """Register; see ``Directory.join``. Also removes what the dead left on this machine."""
        wish = Wish(uid, pid, host, segment, address, name, rank, guest, tuple(names), info or {})
        answer = self._client.ask("join", wish=wish.to_json())
        while "again" in answer:
            time.sleep(0.02)
            answer = self._client.ask("join", wish=wish.to_json())
        with self._folder.locked():
            sweep(self.folder, keep={one.uid for one in self.members()})
        return Member.from_json(answer["member"])

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

    def departed(self) -> list[Member]:
        """Who left lately, by name the last one."""
        self._refresh(ANSWER_SECONDS)
        return list(self._departed)

    def alive(self, member: Member) -> bool:
        """Whether it runs and has not left; while the server is silent, what it said last."""
        own = os.path.join(self.folder, f"{member.uid}.seg")
        if member.segment == own and os.path.exists(own):
            # Such a name is unique in the world: it is a process of this machine.
            return is_alive(own)
        if time.monotonic() - self._asked_at > FRESH_SECONDS:
            try:
                self._refresh(PATIENCE_SECONDS)
            except (WorldGone, EndpointClosed):
                self._asked_at = time.monotonic() + SILENCE_SECONDS
        return member.uid in self._living

    def _refresh(self, limit: float) -> None:
        with self._refreshing:
            answer = self._client.ask("state", limit, version=self._version)
            if "members" in answer:
                self._members = [Member.from_json(one) for one in answer["members"]]
                self._departed = [Member.from_json(one) for one in answer["departed"]]
                self._living = frozenset(one.uid for one in self._members) - set(answer["dead"])
            self._version = answer["version"]
            self._asked_at = time.monotonic()

    # ---- for observers: processes of other machines, see ``Elsewhere`` ----

    def pictures(self, fresh: bool = False) -> list[State]:
        """What the world's processes do; see ``Elsewhere.pictures``. Raises nothing."""
        return self._elsewhere.pictures(fresh)

    def pulse(self) -> int:
        """A number that changes whenever ``pictures`` does."""
        return self._elsewhere.pulse()

    def judge(self, uid: str, call: int, judgement: str) -> bool:
        """End a blocked call of a process; see ``Elsewhere.judge``."""
        return self._elsewhere.judge(uid, call, judgement)

    def interrupt(self, uid: str) -> None:
        """Send SIGINT to a process; see ``Elsewhere.interrupt``."""
        self._elsewhere.interrupt(uid)

    def close(self) -> None:
        """Release the connection and the folder. Idempotent; does not leave."""
        self._folder.close()
        self._client.close()

    def __enter__(self) -> RemoteDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
