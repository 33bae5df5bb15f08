"""How processes become a group: they meet.

Making a group is a collective call itself. Every member sends a fresh number to the first; when it
has one from each, it tells all of them all. The group's mark is made of these numbers, so that no
message, memory or failure of an earlier group of the same members is ever taken for one of this:
after Stop, or after an error on some of them, a new group begins anew.

A member that gives up takes its number back. The first keeps numbers that came before it made the
group; if it gives up, it tells those who wait. A number that comes late is dropped when they meet
again, and takes no room of the user's until then.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sfm_kernel.endpoint import BUFFERING, Context, Endpoint
from sfm_kernel.endpoint.bystanders import hooks
from sfm_kernel.errors import (
    CollectiveError,
    DeadlockDetected,
    PeerLost,
    SFMError,
    UnknownName,
    WouldBlock,
)
from sfm_kernel.transport.base import Member, Name

ASK_AGAIN = 10
"""Who waits for an answer looks around every 100 ms, and asks again so many times less often."""

SHOWN = 12
"""Members whose names observers are told."""


def resolve(sfm: Endpoint, members: Sequence[Name] | None) -> list[Member]:
    """The processes with these names or ranks; all that have a rank if None. See ``Group``."""
    everybody = sfm.members()
    if members is None:
        ranked = [one for one in everybody if one.rank is not None]
        found = sorted(ranked, key=lambda one: one.rank or 0)
    else:
        known: dict[Any, Member] = {one.rank: one for one in everybody if one.rank is not None}
        known |= {one.name: one for one in everybody}
        unknown = [one for one in members if one not in known]
        if unknown:
            raise UnknownName(unknown[0], [one.name for one in everybody], sfm.world)
        found = [known[one] for one in members]
    for nth, one in enumerate(found):
        if one in found[:nth]:
            raise ValueError(f"the group lists {one.name!r} twice: {list(members or ())}")
    if not any(one.uid == sfm.uid for one in found):
        names = [one.name for one in found]
        raise ValueError(f"{sfm.name!r} is no member of {names}: only members make the group")
    return found


def meet(
    sfm: Endpoint,
    members: Sequence[Member],
    name: str,
    on_wait: Callable[[], None] | None = None,
    called: Callable[[str], str] = str,
    title: str = "",
) -> str:
    """Return when all members have called it: the group's mark, equal on all of them.

    ``on_wait`` is called about every 100 ms; what it raises ends the wait. ``called(text)`` gives
    what observers are told of it, ``title`` what the group is called.

    Raises:
        PeerLost: a member has died.
        DeadlockDetected: not all members will come.
        CollectiveError: the first member gave up.
    """
    text = "\n".join([name, *(one.uid for one in members)])
    table = _table_of(sfm, hashlib.blake2b(text.encode(), digest_size=16).hexdigest())
    if not table.busy.acquire(blocking=False):
        raise CollectiveError("another thread of this process is making the same group")
    try:
        place = [one.uid for one in members].index(sfm.uid)
        names = [one.name for one in members]
        table.context.doing = called(_made_of(names))
        table.context.group = (table.context.name or "", title)
        table.on_wait = on_wait
        own = secrets.token_hex(8)
        if place == 0:
            numbers = table.receive(members, own)
        else:
            numbers = table.register(members, place, own)
    finally:
        table.busy.release()
    return hashlib.blake2b("".join(numbers).encode(), digest_size=16).hexdigest()


def _made_of(names: list[Name]) -> str:
    return f"Group({names})" if len(names) <= SHOWN else f"Group() of {len(names)}"


class _Table:
    """Where the members of one group meet, again and again."""

    def __init__(self, sfm: Endpoint, key: str) -> None:
        self.context = Context(sfm, f"group {key}", news=True, library=True)
        self.context.buffering = BUFFERING
        self.context.private = True
        self.busy = threading.Lock()
        self.on_wait: Callable[[], None] | None = None
        self._sfm = weakref.ref(sfm)  # which is the key of the table of tables
        self._came: dict[Name, str] = {}
        self._used: dict[Name, str] = {}  # with these a group was made, or given up, before

    def register(self, members: Sequence[Member], place: int, own: str) -> list[str]:
        """What a member does."""
        names = [one.name for one in members]
        first, turns = names[0], itertools.count(1)

        def tick() -> None:
            self._look_around(members)
            if next(turns) % ASK_AGAIN == 0:  # the first may have been interrupted
                _send(self.context, first, number=own)

        self.context.tick = tick
        try:
            _send(self.context, first, number=own)
            while True:
                answer = self.context.recv(src=first)
                if answer.numbers.get(names[place]) == own:  # else it is for an earlier attempt
                    break
        except BaseException:
            with contextlib.suppress(SFMError, OSError):
                self.context.send(dest=first, number=own, withdrawn=True)
            raise
        if answer.lost is not None:
            raise PeerLost(answer.lost, f"and the group of {names} cannot be made without it")
        if answer.cycle is not None:
            raise DeadlockDetected(answer.cycle, answer.failed)
        if answer.failed is not None:
            raise CollectiveError(answer.failed)
        return [answer.numbers[name] for name in names]

    def receive(self, members: Sequence[Member], own: str) -> list[str]:
        """What the first does."""
        names = [one.name for one in members]
        self.context.tick = lambda: self._look_around(members)
        failed: str | None = None
        lost: Any = None
        cycle: list[Any] | None = None
        try:
            while self._look() or any(name not in self._came for name in names[1:]):
                missing = [name for name in names[1:] if name not in self._came]
                if missing:
                    self._note(dict(self.context.recv(src=missing[0])))
        except BaseException as failure:
            lost = failure.peer if isinstance(failure, PeerLost) else None
            failed = f"{names[0]!r} could not make the group of {names}: {type(failure).__name__}"
            if isinstance(failure, DeadlockDetected):
                cycle, failed = failure.cycle, str(failure)
            raise
        finally:
            numbers = {names[0]: own, **self._came}
            self._came, self._used = {}, numbers
            why = {"failed": failed, "lost": lost, "cycle": cycle}
            for name in numbers:
                if name != names[0]:
                    with contextlib.suppress(SFMError, OSError):  # who has died is noticed later
                        self.context.send(dest=name, numbers=numbers, **why)
        return [numbers[name] for name in names]

    def _look(self) -> bool:
        """Take in what has come; whether a number was taken back."""
        withdrawn = False
        with contextlib.suppress(WouldBlock):
            while True:
                withdrawn |= self._note(dict(self.context.recv_nb()))
        return withdrawn

    def _note(self, message: dict[str, Any]) -> bool:
        if "withdrawn" not in message:
            if self._used.get(message["src"]) != message["number"]:
                self._came[message["src"]] = message["number"]
            return False
        if self._came.get(message["src"]) == message["number"]:
            del self._came[message["src"]]
        return True

    def _look_around(self, members: Sequence[Member]) -> None:
        """A member that was replaced does not come: who has its name now meets elsewhere."""
        if self.on_wait is not None:
            self.on_wait()
        sfm = self._sfm()
        if sfm is not None:
            check_for_heirs(sfm, members, "and who has its name now is another process")


def check_for_heirs(sfm: Endpoint, members: Sequence[Member], why: str) -> None:
    """Raise PeerLost if somebody else has a member's name now: who had it is dead."""
    now: dict[Name, str] = {}
    with contextlib.suppress(SFMError, OSError):  # members go on without a directory
        now = {one.name: one.uid for one in sfm.members()}
    for one in members:
        if now.get(one.name, one.uid) != one.uid:
            raise PeerLost(one.name, why)


def _send(context: Context, name: Name, **attributes: Any) -> None:
    try:
        context.send(dest=name, **attributes)
    except UnknownName:  # it was there when the group was made out
        raise PeerLost(name, "and the group cannot be made without it") from None


_tables: weakref.WeakKeyDictionary[Endpoint, dict[str, _Table]] = weakref.WeakKeyDictionary()


def _table_of(sfm: Endpoint, key: str) -> _Table:
    return _tables.setdefault(sfm, {}).setdefault(key, _Table(sfm, key))


def _hooks() -> Iterator[Callable[[], None]]:
    """What groups in the making run while their members wait: it may end the wait, or send."""
    for tables in list(_tables.values()):
        for table in list(tables.values()):
            if table.on_wait is not None and table.busy.locked():
                yield table.on_wait


hooks.append(_hooks)
