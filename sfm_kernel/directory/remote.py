"""The client of a DirectoryServer."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

import zmq

from sfm_kernel import errors
from sfm_kernel.directory.cleaning import sweep
from sfm_kernel.directory.folders import WorldFolder, is_alive
from sfm_kernel.directory.server import PURPOSE
from sfm_kernel.directory.table import Wish
from sfm_kernel.errors import EndpointClosed, WorldAccess, WorldError, WorldGone
from sfm_kernel.transport.base import Member, Name
from sfm_kernel.transport.zmq.curve import Keys
from sfm_kernel.transport.zmq.line import Line, prepare
from sfm_kernel.transport.zmq.sockets import Context, has_mail

ANSWER_SECONDS = 10.0
"""How long a server may take to answer. One that is not there is noticed much earlier."""
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
        self._url, self._key = url, key
        self._asking = threading.Lock()
        self._refreshing = threading.Lock()
        self._pid = os.getpid()
        self._number = 0
        self._server: str | None = None
        self._version = -1
        self._members: list[Member] = []
        self._departed: list[Member] = []
        self._living: frozenset[str] = frozenset()
        self._asked_at = 0.0
        keys = Keys(key, PURPOSE)
        self._folder = WorldFolder(world, create=True)
        self._context: Context = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        prepare(self._dealer)
        keys.connect(self._dealer)
        self._line = Line(self._dealer)
        try:
            try:
                self._dealer.connect(url)
            except zmq.ZMQError as error:
                raise WorldError(f"{url!r} is no address of a directory server: {error}") from None
            theirs = self._ask("hello")["world"]
            if theirs != world:
                raise WorldGone(
                    f"the directory server at {url} keeps world {theirs!r}, not {world!r}"
                )
        except BaseException:
            self.close()
            raise

    @property
    def world(self) -> str:
        return self._folder.world

    @property
    def folder(self) -> str:
        return self._folder.path

    @property
    def key(self) -> bytes:
        return self._key

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
        answer = self._ask("join", wish=wish.to_json())
        while "again" in answer:
            time.sleep(0.02)
            answer = self._ask("join", wish=wish.to_json())
        with self._folder.locked():
            sweep(self.folder, keep={one.uid for one in self.members()})
        return Member.from_json(answer["member"])

    def leave(self, member: Member) -> None:
        """Take the entry out; harmless if it is not there or the server is gone."""
        try:
            self._ask("leave", PATIENCE_SECONDS, uid=member.uid)
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
            answer = self._ask("state", limit, version=self._version)
            if "members" in answer:
                self._members = [Member.from_json(one) for one in answer["members"]]
                self._departed = [Member.from_json(one) for one in answer["departed"]]
                self._living = frozenset(one.uid for one in self._members) - set(answer["dead"])
            self._version = answer["version"]
            self._asked_at = time.monotonic()

    def close(self) -> None:
        """Release the connection and the folder. Idempotent; does not leave."""
        self._folder.close()
        if os.getpid() != self._pid:
            return  # sockets and locks are the parent's
        with self._asking:
            if not self._context.closed:
                self._line.close()
                self._context.term()

    def __enter__(self) -> RemoteDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, what: str, limit: float = ANSWER_SECONDS, **details: Any) -> dict[str, Any]:
        """One request and its answer. An interrupt leaves an answer behind, which is skipped."""
        if os.getpid() != self._pid:
            raise EndpointClosed("this directory belongs to the parent process: join for yourself")
        with self._asking:
            if self._context.closed:
                raise EndpointClosed("this directory was closed")
            self._number += 1
            request = {"number": self._number, "ask": what, **details}
            self._line.update()
            if not self._line.dead:
                self._dealer.send(json.dumps(request).encode())
            answer = self._receive(self._number, time.monotonic() + limit)
        if "error" in answer:
            raise getattr(errors, answer["error"], WorldError)(answer["message"])
        return answer

    def _receive(self, number: int, deadline: float) -> dict[str, Any]:
        poller = zmq.Poller()
        poller.register(self._dealer, zmq.POLLIN)
        poller.register(self._line.monitor, zmq.POLLIN)
        while True:
            while has_mail(self._dealer):
                answer: dict[str, Any] = json.loads(self._dealer.recv())
                if answer.get("number") == number:
                    self._recognise(answer["server"])
                    return answer
            self._line.update()
            if self._line.unwelcome:
                raise WorldAccess(
                    f"the directory server at {self._url} refuses the key: it is not the key of "
                    f"world {self.world!r} (or something else listens there)"
                )
            if self._line.dead or time.monotonic() > deadline:
                raise self._gone()
            poller.poll(50)

    def _recognise(self, server: str) -> None:
        if self._server is None:
            self._server = server
        elif server != self._server:  # a new one at the same address, which knows nobody
            raise self._gone()

    def _gone(self) -> WorldGone:
        return WorldGone(
            f"the directory server of world {self.world!r} does not answer at {self._url}. "
            f"Processes that know each other go on; start the cluster (or the server) again to "
            f"join or find others"
        )
