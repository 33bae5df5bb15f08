"""The others: who is in the world, and the ways to them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from sfm_kernel.endpoint.calls import call
from sfm_kernel.errors import AddressError, EndpointClosed, PeerLost, SFMError, UnknownName
from sfm_kernel.transport.base import Directory, Member, Name, Route, Transport

if TYPE_CHECKING:
    from sfm_kernel._native import Channel

LOOK_EVERY = 10
"""A blocked receive looks up every 100 ms for signals, and so many times less often for the death
of whom it waits for: with cold caches asking takes some 0.2 ms, and waiting must cost no CPU."""

ASK_EVERY = 2.0
"""Seconds until the directory is asked again whether a name has the rank that is waited for."""


class Peers:
    """What one endpoint knows of the others. Thread-safe.

    The directory is asked when a name is not known, or when who bears it has died; never for a
    message to somebody who is known.

    Attributes:
        channels: the native side of the routes, by the same names, for the native calls.
        ranks: the names of those who have a rank, for the native calls.
    Args:
        kinds: the transports that may be used for sending, by their ``kind``.
        closed: says whether the own endpoint is closed.
        tell: called with who cannot be reached, since when (s since 1970) and why, by uid.
    """

    def __init__(
        self,
        own: Member,
        directory: Directory,
        transports: Iterable[Transport],
        kinds: Iterable[str],
        closed: Callable[[], bool],
        tell: Callable[[dict[str, tuple[float, str]]], None],
    ) -> None:
        self._own, self._directory, self._closed = own, directory, closed
        self._transports = list(transports)
        self._kinds = tuple(kinds)
        self._known: dict[Name, Member] = {}
        self._left: dict[Name, Member] = {}  # who had names that nobody has now
        self._before = frozenset(one.uid for one in directory.departed())
        self._routes: dict[Name, Route] = {}
        self.channels: dict[Name, Channel] = {}
        self.ranks: dict[int, Name] = {}
        self._unknown: dict[int, _UnknownRank] = {}
        self._tell = tell
        self._unreachable: dict[str, tuple[float, str]] = {}  # since when, and why
        self._given_up: set[str] = set()  # the uids to which a way has failed
        self._lock = threading.RLock()

    # ---- who ----

    def members(self) -> list[Member]:
        """Everybody in the world, the dead that nobody replaced among them, as of now."""
        return self._take(self._directory.members())

    def _take(self, members: list[Member]) -> list[Member]:
        known = _by_name(members)
        # Also who came and left while nobody here looked: what a wait for it does must not depend
        # on when this endpoint has looked.
        departed = [one for one in self._directory.departed() if one.uid not in self._before]
        left = self._left | self._known | _by_name(departed)
        self._known = known
        self._left = {name: one for name, one in left.items() if name not in known}
        self.ranks |= {one.rank: one.name for one in members if one.rank is not None}
        current = {one.uid for one in members}
        with self._routing():  # a name whose process was replaced leads to the new one from now on
            for name, route in list(self._routes.items()):
                # Another thread may have made a way to somebody who joined after our look.
                if route.peer.uid not in current and not self.alive(route.peer):
                    self._forget_route(name)
        return members

    def lookup(self, name: Name) -> Member | None:
        """Who has this name or rank; TypeError if it cannot be one (a list)."""
        member = self._known.get(name)
        if member is None:
            self._take(self._directory.listed())
            member = self._known.get(name)
        if member is None:
            self.members()
            member = self._known.get(name)
        return member

    def known(self, name: Name) -> Member:
        """Who has this name or rank; raises UnknownName, or AddressError for no name at all."""
        try:
            member = self.lookup(name)
        except TypeError:
            raise AddressError(f"a name or a rank is needed, not {name!r}") from None
        if member is None:
            living = [one.name for one in self._directory.members() if self.alive(one)]
            raise UnknownName(name, living, self._directory.world)
        return member

    def alive(self, member: Member) -> bool:
        """Whether this incarnation lives, as far as directory and connections tell."""
        if member.uid == self._own.uid:
            return not self._closed()
        if any(transport.lost(member) for transport in self._transports):
            return False
        return self._directory.alive(member)

    def _lives(self, member: Member) -> bool:
        """The same, for a call that waits for it: observers are told if it cannot be reached."""
        silences = [one.silence(member) for one in self._transports]
        silent = next((one for one in silences if one is not None), None)
        _, why = self._unreachable.get(member.uid, (0.0, None))
        if why != (silent and silent[1]):
            told = {uid: one for uid, one in self._unreachable.items() if uid != member.uid}
            if silent:
                told[member.uid] = time.time() - silent[0], silent[1]
            self._unreachable = told
            self._tell(told)
        return self.alive(member)

    def is_near(self, member: Member) -> bool:
        """Whether messages to it go through memory that both can map. Makes no way to it."""
        return member.uid == self._own.uid or any(
            transport.is_near(member)
            for transport in self._transports
            if transport.kind in self._kinds
        )

    def _find(self, dest: Name) -> Member:
        member = self.lookup(dest)
        if member is not None and not self.alive(member):
            self.members()  # it may have been replaced
            member = self._known.get(dest)
        if member is None:
            names = [one.name for one in self._directory.members() if self.alive(one)]
            raise UnknownName(dest, names, self._directory.world)
        if not self.alive(member):
            raise PeerLost(dest, "and did not receive this message")
        return member

    # ---- ways ----

    def _routing(self) -> AbstractContextManager[object]:
        """Alone with the ways. Raises SFMError where a handler would wait for its own thread.

        The lock itself: whatever wraps it can be interrupted after it was taken.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks
            raise SFMError(
                "this thread was looking for a way to somebody when a signal handler came in "
                "between, which cannot do so now. Let it set a flag or an event instead"
            )
        return self._lock

    def route(self, dest: Name) -> Route:
        """The way to ``dest``; made if there is none.

        Raises: EndpointClosed, UnknownName, PeerLost, SegmentFull; TypeError if ``dest`` cannot
        be a name.
        """
        known = self._routes.get(dest)
        return known or self._make_route(dest)

    def _make_route(self, dest: Name) -> Route:
        if self._closed():
            raise EndpointClosed("this endpoint is closed: join the world again")
        member = self._find(dest)
        with self._routing():
            # The same process may be known by name and by rank: one way, or order would be lost.
            for route in self._routes.values():
                if route.peer.uid == member.uid:
                    return self._remember_route(dest, route)
            for transport in self._transports:
                if transport.kind not in self._kinds:
                    continue
                made = transport.route(member, lambda: self._lives(member))
                if made is not None:
                    return self._remember_route(dest, made)
        if not self.alive(member):
            raise PeerLost(dest)
        raise SFMError(
            f"there is no way to {dest!r}: SFM_TRANSPORT={os.environ.get('SFM_TRANSPORT', '')!r} "
            f"here, and what that process has, leave none. Give all processes of a world the same"
        )

    def _remember_route(self, name: Name, route: Route) -> Route:
        self._routes[name] = route
        self.channels[name] = route.channel
        return route

    def _forget_route(self, name: Name) -> None:
        del self._routes[name]
        self.channels.pop(name, None)

    def give_up(self, dest: Name, failed: Channel) -> None:
        """The next message to ``dest`` gets a new way; ``failed`` is the old one.

        If another thread has made a new way already, that one stays: of two ways to the same
        process the receiver would see only the first.
        """
        with self._routing():
            lost = self._routes.get(dest)
            if lost is None or lost.channel is not failed:
                return
            for name in [name for name, route in self._routes.items() if route is lost]:
                self._forget_route(name)
            self._given_up.add(lost.peer.uid)

    def successor(self, dest: Name) -> Route | None:
        """The way to the process that has taken the place of ``dest``, which died; if any."""
        self.members()
        member = self._known.get(dest)
        if member is None or member.uid in self._given_up or not self.alive(member):
            return None
        return self.route(dest)

    def forget(self) -> None:
        """Let go of the ways: they and we refer to each other."""
        with self._routing():
            self._routes.clear()
            self.channels.clear()

    # ---- waiting for somebody ----

    def canonical(self, src: Any, news: bool = False) -> Any:
        """A rank in a template means the process's name, which is what messages carry.

        ``news``: somebody else may have taken the rank since it was looked up.
        """
        if type(src) is not int:
            return src
        if news or src not in self.ranks:
            try:
                self.members()
            except (SFMError, OSError):  # those who know each other go on without a directory
                if src not in self.ranks:
                    raise
        if src in self.ranks:
            return self.ranks[src]
        return self._unknown.setdefault(src, _UnknownRank(self, src))

    def has_passed_on(self, src: Any) -> bool:
        """Whether ``src`` is a rank whose process has died, and which another one has now."""
        name = self.ranks.get(src) if type(src) is int else None
        if name is None:
            return False
        holder = self._known.get(name)
        if holder is not None and self.alive(holder):
            return False
        return bool(self.canonical(src, news=True) != name)

    def watch(self, template: dict[str, Any]) -> Callable[[], None]:
        """What a blocked receive calls now and then: raises PeerLost when its ``src`` is dead.

        A process that dies while somebody waits for it is lost for that wait, even if another
        takes its place at once: the new one does not know what was asked of the old one. So is one
        who has left before, but since this endpoint joined; a name that nobody had is waited for.
        """
        src: Any = template.get("src")
        if isinstance(src, _UnknownRank):
            src = src.rank
        if "src" not in template or callable(src):
            return _nothing
        try:
            awaited = self.lookup(src)
        except TypeError:  # not hashable: it matches no name
            return _nothing
        if awaited is not None and not self.alive(awaited):
            self.members()  # it may have been replaced before this wait began
            awaited = self._known.get(src)

        turns = itertools.count(1)
        dying = False

        def check() -> None:
            nonlocal awaited, dying
            if not dying and next(turns) % LOOK_EVERY:
                return
            if awaited is None:
                awaited = self.lookup(src)  # a late joiner
            lost = awaited or self._left.get(src)
            dying = lost is not None and not self._lives(lost)
            if lost and dying and all(transport.settled(lost) for transport in self._transports):
                waited = f"while {self._own.name!r} waited for it in {call('recv', template)}"
                reasons = [transport.why_lost(lost) for transport in self._transports]
                raise PeerLost(src, " ".join(filter(None, [waited, *reasons])))

        return check


def _by_name(members: Iterable[Member]) -> dict[Name, Member]:
    """By rank and by name; a name goes before a rank."""
    members = list(members)
    known: dict[Name, Member] = {one.rank: one for one in members if one.rank is not None}
    return known | {one.name: one for one in members}


class _UnknownRank:
    """In a template, a rank that nobody has had yet: it equals the name of whoever gets it."""

    def __init__(self, peers: Peers, rank: int) -> None:
        self._peers, self.rank = peers, rank
        self._asked: dict[Any, float] = {}  # when the directory was asked because of a name

    def __eq__(self, name: object) -> bool:
        if name == self.rank:
            return True
        now = time.monotonic()
        if self.rank not in self._peers.ranks and now > self._asked.get(name, 0.0) + ASK_EVERY:
            self._asked[name] = now
            try:
                self._peers.members()
            except (SFMError, OSError):
                return False
        return self._peers.ranks.get(self.rank) == name

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.rank)


def _nothing() -> None:
    """What a receive from anybody has to check."""
