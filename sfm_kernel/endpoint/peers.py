"""The members of the world as one endpoint knows them, and the routes to them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NoReturn

from sfm_kernel.directory import Member, Name
from sfm_kernel.endpoint.calls import call
from sfm_kernel.errors import AddressError, EndpointClosed, PeerLost, SFMError, UnknownName
from sfm_kernel.transport.base import Directory, Route, Transport

if TYPE_CHECKING:
    from sfm_kernel._native import Channel

DEATH_CHECK_EVERY = 10
"""Ticks of a blocked receive, each 100 ms, between checks whether its ``src`` lives, if that shares
memory with this process. A check takes some 0.2 ms with cold caches, and waiting must cost no CPU.
Of the others, connections and the directory tell: a receive looks at each tick, and at news."""

ASK_EVERY = 2.0
"""Seconds before a receive asks the directory again whether a name has the rank it waits for."""


class Peers:
    """The members of a world as one endpoint knows them. Thread-safe.

    It asks the directory about a name that it does not know, or whose process has died; never for
    a message to a known process.

    Attributes:
        channels: the native side of the routes, by the same names, for the native calls.
        ranks: the names of the processes that have a rank, for the native calls.
    Args:
        kinds: the transports that may be used for sending, by their ``kind``.
        closed: returns whether the endpoint is closed.
        report: called with the peers that cannot be reached: since when (s since 1970) and why, by
            uid.
    """

    def __init__(
        self,
        member: Member,
        directory: Directory,
        transports: Iterable[Transport],
        kinds: Collection[str],
        closed: Callable[[], bool],
        report: Callable[[dict[str, tuple[float, str]]], None],
    ) -> None:
        self._member, self._directory, self._closed = member, directory, closed
        self._transports = list(transports)
        self._senders = [transport for transport in self._transports if transport.kind in kinds]
        self._known: dict[Name, Member] = {}
        self._departed: dict[Name, Member] = {}  # the last bearers of names that nobody has now
        self._departed_before = frozenset(member.uid for member in directory.departed())
        self._routes: dict[Name, Route] = {}
        self.channels: dict[Name, Channel] = {}
        self.ranks: dict[int, Name] = {}
        self._unknown: dict[int, _UnknownRank] = {}
        self._report = report
        self._unreachable: dict[str, tuple[float, str]] = {}  # since when, and why
        self._given_up: set[str] = set()  # the uids to which a route has failed
        self._lock = threading.RLock()

    # ---- members ----

    def members(self) -> list[Member]:
        """All members of the world now, including dead ones that nobody has replaced."""
        return self._update(self._directory.members())

    def _update(self, members: list[Member]) -> list[Member]:
        known = by_name(members)
        # Includes members that came and left between two updates: the outcome of a wait for one
        # must not depend on the times of the updates.
        listed = self._directory.departed()
        departed = by_name(m for m in listed if m.uid not in self._departed_before)
        departed = self._departed | self._known | departed
        self._known = known
        self._departed = {name: departed[name] for name in departed.keys() - known.keys()}
        self.ranks |= {m.rank: m.name for m in members if m.rank is not None}
        current = {member.uid for member in members}
        with self._routing():  # a name whose process was replaced leads to the new one from now on
            for name, route in list(self._routes.items()):
                # Another thread may have made a route to a process that joined after `members`.
                if route.peer.uid not in current and not self.alive(route.peer):
                    self._forget_route(name)
        return members

    def lookup(self, name: Name) -> Member | None:
        """The member with this name or rank, or None; TypeError if it cannot be one (a list)."""
        for read in (self._directory.listed, self._directory.members):
            if name not in self._known:
                self._update(read())
        return self._known.get(name)

    def known(self, name: Name) -> Member:
        """The member with this name or rank; raises UnknownName, or AddressError for no name."""
        try:
            member = self.lookup(name)
        except TypeError:
            raise AddressError(f"a name or a rank is needed, not {name!r}") from None
        return member or self._raise_unknown(name)

    def _raise_unknown(self, name: Name) -> NoReturn:
        members = in_order(self._directory.members())
        living = [member.name for member in members if self.alive(member)]
        raise UnknownName(name, living, self._directory.world)

    def alive(self, member: Member) -> bool:
        """Whether this incarnation lives, as far as the directory and the connections show."""
        if member.uid == self._member.uid:
            return not self._closed()
        if any(transport.lost(member) for transport in self._transports):
            return False
        return self._directory.alive(member)

    def _lives(self, member: Member) -> bool:
        """``alive``, for a call that waits for it; reports to observers if it cannot be reached."""
        silences = (transport.silence(member) for transport in self._transports)
        silent = next(filter(None, silences), None)
        _, why = self._unreachable.get(member.uid, (0.0, None))
        if why != (silent and silent[1]):
            unreachable = self._unreachable.copy()
            unreachable.pop(member.uid, None)
            if silent:
                unreachable[member.uid] = time.time() - silent[0], silent[1]
            self._unreachable = unreachable
            self._report(unreachable)
        return self.alive(member)

    def is_near(self, member: Member) -> bool:
        """Whether messages to it go through memory that both can map. Makes no route to it."""
        return member.uid == self._member.uid or any(
            transport.is_near(member) for transport in self._senders
        )

    def _latest(self, name: Name) -> Member | None:
        """As ``lookup``; of a dead member its successor, if it has one."""
        member = self.lookup(name)
        if member is not None and not self.alive(member):
            self.members()
            member = self._known.get(name)
        return member

    def _find(self, dest: Name) -> Member:
        member = self._latest(dest)
        gone = member or self._departed.get(dest)
        if member is not None and self.alive(member):
            return member
        why = self._directory.why_departed(gone) if gone else ""
        if member is None and not why:
            self._raise_unknown(dest)
        raise PeerLost(dest, f"and did not receive this message {why}".strip())

    # ---- routes ----

    def _routing(self) -> AbstractContextManager[object]:
        """The lock of the routes. Raises SFMError if a signal handler would wait for its thread.

        It returns the bare lock: a wrapper could be interrupted after it has taken the lock.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition asks
            raise SFMError(
                "a signal handler interrupted this thread while it made a route to a process, and "
                "cannot make one itself now. Let it set a flag or an event instead"
            )
        return self._lock

    def route(self, dest: Name) -> Route:
        """The route to ``dest``; made if there is none.

        Raises: EndpointClosed, UnknownName, PeerLost, SegmentFull; TypeError if ``dest`` cannot
        be a name.
        """
        return self._routes.get(dest) or self._make_route(dest)

    def _make_route(self, dest: Name) -> Route:
        if self._closed():
            raise EndpointClosed("this endpoint is closed: join the world again")
        member = self._find(dest)
        with self._routing():
            # A process may be known by name and by rank: two routes would lose the order.
            for route in self._routes.values():
                if route.peer.uid == member.uid:
                    return self._remember_route(dest, route)
            for transport in self._senders:
                found = transport.route(member, lambda: self._lives(member))
                if found is not None:
                    return self._remember_route(dest, found)
        if not self.alive(member):
            raise PeerLost(dest)
        raise SFMError(
            f"there is no route to {dest!r}: this process has SFM_TRANSPORT="
            f"{os.environ.get('SFM_TRANSPORT', '')!r}, and that process has no transport in common "
            f"with it. Give all processes of a world the same"
        )

    def _remember_route(self, name: Name, route: Route) -> Route:
        self._routes[name] = route
        self.channels[name] = route.channel
        return route

    def _forget_route(self, name: Name) -> None:
        del self._routes[name]
        self.channels.pop(name, None)

    def give_up(self, dest: Name, failed: Channel) -> None:
        """Remove the route to ``dest`` whose channel, ``failed``, has failed.

        The next message gets a new route. If another thread has made one already, that one stays:
        of two routes from one process the receiver would see only the first.
        """
        with self._routing():
            lost = self._routes.get(dest)
            if lost is None or lost.channel is not failed:
                return
            for name in [name for name, route in self._routes.items() if route is lost]:
                self._forget_route(name)
            self._given_up.add(lost.peer.uid)

    def successor(self, dest: Name) -> Route | None:
        """The route to the process that has replaced ``dest``, which died; None if none has."""
        self.members()
        member = self._known.get(dest)
        if member is None or member.uid in self._given_up or not self.alive(member):
            return None
        return self.route(dest)

    def forget(self) -> None:
        """Drop the routes: they and this object refer to each other."""
        with self._routing():
            self._routes.clear()
            self.channels.clear()

    # ---- waiting for a process ----

    def canonical(self, src: Any, news: bool = False) -> Any:
        """The name of the process whose rank is in a template: messages carry names.

        ``news``: another process may have taken the rank since it was looked up.
        """
        if type(src) is not int:
            return src
        if news or src not in self.ranks:
            try:
                self.members()
            except (SFMError, OSError):  # processes that know each other need no directory
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
        """A check for a blocked receive to call: it raises PeerLost when its ``src`` is dead.

        A process that dies during a wait for it is lost for that wait, even if another replaces it
        at once: the new one does not know the requests to the old one. The same holds for a process
        that left earlier, but after this endpoint joined. A receive waits for a name that no
        process has had yet.
        """
        src: Any = template.get("src")
        if isinstance(src, _UnknownRank):
            src = src.rank
        if "src" not in template or callable(src):
            return lambda: None
        try:
            awaited = self._latest(src)
        except TypeError:  # not hashable: it matches no name
            return lambda: None
        every, turns = self._check_every(awaited), itertools.count(1)
        dying = False

        def check() -> None:
            nonlocal awaited, every, dying
            if not dying and next(turns) % every:
                return
            if awaited is None:
                awaited = self.lookup(src)  # a late joiner
                every = self._check_every(awaited)
            lost = awaited or self._departed.get(src)
            dying = lost is not None and not self._lives(lost)
            if lost and dying and all(transport.settled(lost) for transport in self._transports):
                waited = f"while {self._member.name!r} waited for it in {call('recv', template)}"
                reasons = [transport.why_lost(lost) for transport in self._transports]
                reasons.append(self._directory.why_departed(lost))
                raise PeerLost(src, " ".join(filter(None, [waited, *reasons])))

        return check

    def _check_every(self, awaited: Member | None) -> int:
        """Ticks between two checks whether it lives."""
        return DEATH_CHECK_EVERY if awaited is None or self.is_near(awaited) else 1


def in_order(members: Iterable[Member]) -> list[Member]:
    """The members by rank; those without a rank, such as notebooks, last."""
    return sorted(members, key=lambda member: (member.rank is None, member.rank))


def by_name(members: Iterable[Member]) -> dict[Name, Member]:
    """The members by rank and by name; a name takes precedence over a rank."""
    members = list(members)
    known: dict[Name, Member] = {m.rank: m for m in members if m.rank is not None}
    return known | {member.name: member for member in members}


class _UnknownRank:
    """In a template, a rank that no process has had yet. It equals the name of its first bearer."""

    def __init__(self, peers: Peers, rank: int) -> None:
        self._peers, self.rank = peers, rank
        self._asked: dict[Any, float] = {}  # name -> when the directory was asked about it

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
