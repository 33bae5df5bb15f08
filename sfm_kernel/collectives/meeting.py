"""Makes a group of processes: its members meet.

Making a group is a collective call itself. Every member sends a fresh number to the first member;
when that has all numbers, it sends all of them to each member. The group's token is made of these
numbers, so that no message, memory or failure of an earlier group of the same members is mistaken
for one of this group: after Stop, or after an error on some members, a new group begins anew.

A member that gives up withdraws its number. The first member keeps numbers that arrived before it
made the group; if it gives up, it reports this to the members that wait. A number that arrives late
is dropped when the members meet again, and takes no space of the user's inbox until then.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sfm_kernel.directory import Member, Name
from sfm_kernel.endpoint import BUFFERING, Context, Endpoint
from sfm_kernel.endpoint.bystanders import hooks
from sfm_kernel.endpoint.peers import by_name, in_order
from sfm_kernel.endpoint.weak import listed
from sfm_kernel.errors import (
    CollectiveError,
    DeadlockDetected,
    PeerLost,
    SFMError,
    UnknownName,
    WouldBlock,
)

ASK_AGAIN = 10
"""Ticks of 100 ms after which a member that waits for an answer sends its number again."""

SHOWN = 12
"""Number of members up to which observers see their names."""


def resolve(sfm: Endpoint, members: Sequence[Name] | None) -> list[Member]:
    """The processes with these names or ranks; None: all that have a rank. See ``Group``."""
    everybody = in_order(sfm.members())
    if members is None:
        resolved = [member for member in everybody if member.rank is not None]
    else:
        known = by_name(everybody)
        unknown = [name for name in members if name not in known]
        if unknown:
            raise UnknownName(unknown[0], [member.name for member in everybody], sfm.world)
        resolved = [known[name] for name in members]
    for index, member in enumerate(resolved):
        if member in resolved[:index]:
            raise ValueError(f"the group lists {member.name!r} twice: {list(members or ())}")
    if all(member.uid != sfm.uid for member in resolved):
        names = [member.name for member in resolved]
        raise ValueError(f"{sfm.name!r} is no member of {names}: only members make the group")
    return resolved


def meet(
    sfm: Endpoint,
    members: Sequence[Member],
    name: str,
    on_wait: Callable[[], None] | None = None,
    called: Callable[[str], str] = str,
    title: str = "",
) -> str:
    """Wait until all members have called it; returns the group's token, equal on all of them.

    Args:
        on_wait: called about every 100 ms; an error that it raises ends the wait.
        called: maps the text of the call to the text that observers show.
        title: the group's title for observers.
    Raises:
        PeerLost: a member has died.
        DeadlockDetected: an observer has proven that not all members will make the group.
        CollectiveError: the first member gave up.
    """
    uids = [member.uid for member in members]
    key = hashlib.blake2b("\n".join([name, *uids]).encode(), digest_size=16).hexdigest()
    table = _tables.setdefault(sfm, {}).setdefault(key, _Table(sfm, key))
    if not table.busy.acquire(blocking=False):
        raise CollectiveError("another thread of this process is making the same group")
    try:
        rank, names = uids.index(sfm.uid), [member.name for member in members]
        table.context.doing = called(
            f"Group({names})" if len(names) <= SHOWN else f"Group() of {len(names)}"
        )
        table.context.group, table.context.in_group = (table.context.name or "", title), names
        table.on_wait = on_wait
        number = secrets.token_hex(8)
        if rank == 0:
            numbers = table.receive(members, number)
        else:
            numbers = table.register(members, rank, number)
    finally:
        table.busy.release()
    return hashlib.blake2b("".join(numbers).encode(), digest_size=16).hexdigest()


class _Table:
    """The state of the meetings of one group's members."""

    def __init__(self, sfm: Endpoint, key: str) -> None:
        self.context = Context(sfm, f"group {key}", BUFFERING, news=True, library=True)
        self.context.private = True
        self.busy = threading.Lock()
        self.on_wait: Callable[[], None] | None = None
        self._sfm = weakref.ref(sfm)  # weak: the endpoint is the key of this table in ``_tables``
        self._arrived: dict[Name, str] = {}
        self._used: dict[Name, str] = {}  # the numbers of the last group that was made or failed

    def register(self, members: Sequence[Member], rank: int, number: str) -> list[str]:
        """Send this member's number to the first member, and receive all numbers."""
        names = [member.name for member in members]
        first, turns = names[0], itertools.count(1)

        def tick() -> None:
            self._check(members[:1])  # only the first member's answer is to come
            if next(turns) % ASK_AGAIN == 0:  # the first member may have been interrupted
                _send(self.context, first, number=number)

        self.context.tick = tick
        try:
            _send(self.context, first, number=number)
            while True:
                answer = self.context.recv(src=first)
                if answer.numbers.get(names[rank]) == number:  # otherwise: of an earlier attempt
                    break
        except BaseException:
            with contextlib.suppress(SFMError, OSError):
                self.context.send(dest=first, number=number, withdrawn=True)
            raise
        if answer.failed is not None:
            raise reported(dict(answer), f"and the group of {names} cannot be made without it")
        return [answer.numbers[name] for name in names]

    def receive(self, members: Sequence[Member], number: str) -> list[str]:
        """As the first member, receive a number from each other one, and send them all numbers."""
        names = [member.name for member in members]
        self.context.tick = lambda: self._check(members)  # each has to send its number
        failed: str | None = None
        lost: Any = None
        cycle: list[Any] | None = None
        try:
            while self._poll() or any(name not in self._arrived for name in names[1:]):
                missing = [name for name in names[1:] if name not in self._arrived]
                if missing:
                    self._note(dict(self.context.recv(src=missing[0])))
        except BaseException as failure:
            lost = failure.peer if isinstance(failure, PeerLost) else None
            failed = f"{names[0]!r} could not make the group of {names}: {type(failure).__name__}"
            if isinstance(failure, DeadlockDetected):
                cycle, failed = failure.cycle, str(failure)
            raise
        finally:
            numbers = {names[0]: number, **self._arrived}
            self._arrived, self._used = {}, numbers
            why = {"failed": failed, "lost": lost, "cycle": cycle}
            for name in numbers:
                if name != names[0]:
                    with contextlib.suppress(SFMError, OSError):  # a death is noticed later
                        self.context.send(dest=name, numbers=numbers, **why)
        return [numbers[name] for name in names]

    def _poll(self) -> bool:
        """Take the messages that have arrived; returns whether a number was withdrawn."""
        withdrawn = False
        with contextlib.suppress(WouldBlock):
            while True:
                withdrawn |= self._note(dict(self.context.recv_nb()))
        return withdrawn

    def _note(self, message: dict[str, Any]) -> bool:
        if "withdrawn" not in message:
            if self._used.get(message["src"]) != message["number"]:
                self._arrived[message["src"]] = message["number"]
            return False
        if self._arrived.get(message["src"]) == message["number"]:
            del self._arrived[message["src"]]
        return True

    def _check(self, members: Sequence[Member]) -> None:
        """Call ``on_wait``, and raise PeerLost for a member that was replaced: the new process of
        its name does not meet here."""
        if self.on_wait is not None:
            self.on_wait()
        sfm = self._sfm()
        if sfm is not None:
            check_for_heirs(sfm, members, "and another process has its name now")


def reported(note: Mapping[str, Any], why: str) -> SFMError:
    """The error of another member, from its note; ``why``: what a death means for this member."""
    if note["lost"] is not None:
        return PeerLost(note["lost"], why)
    if note["cycle"] is not None:
        return DeadlockDetected(note["cycle"], note["failed"])
    return CollectiveError(note["failed"])


def check_for_heirs(sfm: Endpoint, members: Sequence[Member], why: str) -> None:
    """Raise PeerLost if another process has a member's name: that member is dead."""
    now: dict[Name, str] = {}
    with contextlib.suppress(SFMError, OSError):  # members work without a directory
        now = {member.name: member.uid for member in sfm.members()}
    for member in members:
        if now.get(member.name, member.uid) != member.uid:
            raise PeerLost(member.name, why)


def _send(context: Context, name: Name, **attributes: Any) -> None:
    try:
        context.send(dest=name, **attributes)
    except UnknownName:  # the member was in the world when the group was resolved
        raise PeerLost(name, "and the group cannot be made without it") from None


_tables: weakref.WeakKeyDictionary[Endpoint, dict[str, _Table]] = weakref.WeakKeyDictionary()


def _hooks() -> Iterator[Callable[[], None]]:
    """The ``on_wait`` of groups that are being made; it may end the wait, or send."""
    for tables in listed(_tables.values):
        for table in list(tables.values()):
            if table.on_wait is not None and table.busy.locked():
                yield table.on_wait


hooks.append(_hooks)
