"""What the members of a group share: the numbers of their calls, failures, liveness.

A call has a number, which all members count alike, and a *chain*: a hash of this call and all
before it. Its messages carry both, so that a receiver sees at once when the other is in another
call, or was: two calls that do not fit may both have come to their end, such as a broadcast and a
reduction. Members that wait for each other for ever because their calls do not fit send no such
messages; whoever has waited for 100 ms (2 s where they are at several sites) therefore *notes* to
all others which calls it has made, and whoever reads a note compares.

When a call fails on one member, that one notes it to all others and begins a new *epoch*; those
who wait read it within 100 ms, raise, and begin the same epoch. Numbers start anew, and what is
left of older epochs is thrown away. So every member is told once, and the group goes on.

A member that dies is noticed by whoever waits for it, who fails with ``PeerLost``, and tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import CombiningTree, Ledger
from sfm_kernel.collectives.meeting import check_for_heirs
from sfm_kernel.endpoint import BUFFERING, Context, Endpoint, facts
from sfm_kernel.endpoint.bystanders import hooks
from sfm_kernel.endpoint.seen import accounts
from sfm_kernel.errors import (
    CollectiveError,
    CollectiveMismatch,
    DeadlockDetected,
    PeerLost,
    SFMError,
    WouldBlock,
)
from sfm_kernel.transport.base import Member, Name

if TYPE_CHECKING:
    from sfm_kernel.collectives.area import Area
    from sfm_kernel.collectives.levels import Shape

LOOK_EVERY = 5
"""A member that waits looks for notes every 100 ms, and so many times less often for deaths."""


FAR = 20
"""Such looks before a member whose group has several sites notes: a note goes to each other member,
so that with a long way between them every call would send many more messages than it needs."""

LATEST = 16
"""Calls of a group that are told at the end of a program."""

MOST_GONE = 64
"""Groups that nobody has any more at the end of a program, and of which is told as well."""

Made = tuple[Any, ...]
"""A call as it was made: its name; what else must be equal; for arrays their type and shape."""


def describe(call: str, rest: str, dtype: Any = None, shape: Any = None) -> str:
    """The call as a text."""
    array = "" if dtype is None else f"{dtype}{list(shape)}"
    return f"{call}({', '.join(filter(None, (array, rest)))})"


class Team:
    """One member's share in a group.

    Args:
        token: what the group has for itself; see ``meeting``.
        outer: the team of which this is a part, and which hears of its failures.
    Attributes:
        called: gives what observers are told of a call, from its text.
        title: what the group is called.
        sites: the places of the members at each site, sites by their first member.
    """

    def __init__(
        self, sfm: Endpoint, members: Sequence[Member], token: str, outer: Team | None = None
    ) -> None:
        self.sfm, self.members, self.outer = sfm, list(members), outer
        self.names: list[Name] = [one.name for one in members]
        self.size = len(self.members)
        self.place = [one.uid for one in members].index(sfm.uid)
        self.token = token
        self.context = Context(sfm, f"collective {token}", library=True)
        self.context.tick = self._tick
        self.context.private = True
        self.context.doing = self._doing
        self.called: Callable[[str], str] = str
        self.title = ""
        self._notes = Context(sfm, f"collective {token} notes", news=True, library=True)
        # A program whose own messages are not buffered is to hang by those, not by ours.
        self.context.buffering = self._notes.buffering = BUFFERING
        self.is_local = all(sfm.shares_memory_with(one) for one in members)
        sites: dict[str, list[int]] = {}
        for place, one in enumerate(members):
            sites.setdefault(one.site, []).append(place)
        self.sites = list(sites.values())
        self.epoch = 0
        self.ledger = Ledger()
        self.marks: dict[str, int] = {}
        self.on_wait: Callable[[], None] | None = None
        _teams.add(self)
        self._noted = -1
        self._waits = -1, 0
        self._looked = time.time()  # nobody has been missing at the tree before that
        self._failure: dict[str, Any] | None = None
        self._ahead: list[dict[str, Any]] = []
        self._ticks, self._looks = itertools.count(1), itertools.count(1)
        self._forget()

    def _forget(self) -> None:
        """What belongs to one epoch: memory, and teams inside this one."""
        self.area: Area | None = None
        self.no_area: int | None = None
        self.shape: Shape | None = None
        self.inner: dict[str, Team] = {}

    # ---- calls ----

    @property
    def number(self) -> int:
        """The number of the call that this member is in, or was in last."""
        return (self.epoch << 32) + self.ledger.count

    @property
    def calls(self) -> dict[int, str]:
        """The latest calls by their numbers."""
        made = self.ledger.made()
        first = self.number - len(made) + 1
        return {first + nth: describe(*one) for nth, one in enumerate(made)}

    @property
    def tree(self) -> CombiningTree:
        """The memory that the members share. Raises SegmentFull where there is no room for it."""
        if self.ledger.tree is None:
            if not self.is_local:
                raise CollectiveError("flags need members that share memory: name another way")
            path = self.path("tree", self.epoch)
            self.ledger.tree = self.sfm.tree(path, self.fresh_path(), self.size, self.place)
        return self.ledger.tree

    def path(self, kind: str, number: int) -> str:
        """Where a file of the group is: named after its first member, with which it may go."""
        mark = hashlib.blake2b(f"{self.token} {kind} {number}".encode(), digest_size=16)
        return os.path.join(self.sfm.folder, f"{self.members[0].uid}-{mark.hexdigest()}.tree")

    def fresh_path(self) -> str:
        """A name for a file that is not whole yet; it may go with its maker."""
        return os.path.join(self.sfm.folder, f"{self.sfm.uid}-{secrets.token_hex(16)}.new")

    def mark(self, what: str) -> int:
        """A number by which the same call is known in all processes."""
        if what not in self.marks:
            if len(self.marks) > 1000:
                self.marks.clear()
            digest = hashlib.blake2b(what.encode(), digest_size=7).digest()
            self.marks[what] = int.from_bytes(digest, "little")
        return self.marks[what]

    def account(self) -> dict[str, Any]:
        """See ``Account`` in ``endpoint/seen.py``."""
        about = {"title": self.title, "name": self.names[self.place], "size": self.size}
        about |= {"count": self.ledger.count, "chain": self.ledger.chain}
        about |= {"open": self.epoch > 0 or self.ledger.busy}
        return about | {"latest": list(self.calls.items())[-LATEST:]}

    def __del__(self) -> None:
        ledger = getattr(self, "ledger", None)  # where it was never made
        if ledger is not None and ledger.count and self.outer is None and len(_gone) < MOST_GONE:
            _gone[self.token] = self.account()

    # ---- failures ----

    def told(self, failure: BaseException) -> BaseException:
        """What to raise where all members of this team know of the failure already."""
        return failure if self.outer else Told(failure)

    def fail(self, failure: BaseException) -> None:
        """Tell all others that this member's call has failed, and begin a new epoch."""
        lost = failure.peer if isinstance(failure, PeerLost) else None
        calls = failure.calls if isinstance(failure, CollectiveMismatch) else None
        cycle = failure.cycle if isinstance(failure, DeadlockDetected) else None
        what = self.calls.get(self.number, "a collective call")
        told = f"{self.names[self.place]!r} could not go on in {what}: "
        told += f"{type(failure).__name__}: {failure}".rstrip(": ")
        if isinstance(failure, (CollectiveError, DeadlockDetected)):
            told = str(failure)
        # Who was in another call before, or has died, is of no use in earlier calls either.
        for_all = lost is not None or isinstance(failure, CollectiveMismatch)
        about = {"epoch": self.epoch, "number": 0 if for_all else self.number}
        self._failure = {"failed": told, "lost": lost, "calls": calls, "cycle": cycle, **about}
        trees = [(self, self.ledger.tree)]
        trees += [(inner, inner.ledger.tree) for inner in self.inner.values()]
        try:
            self._tell(self._failure)
            for team, tree in trees:
                if tree is not None:
                    tree.abandon()
                    with contextlib.suppress(OSError):  # where not all members have come
                        os.unlink(team.path("tree", team.epoch))
        finally:  # Stop may be pressed twice
            self.begin_epoch(self.epoch + 1)

    def _tell(self, note: dict[str, Any]) -> None:
        for place, name in enumerate(self.names):
            if place != self.place:
                # The dead need not know; nor is a failure lost by another.
                with contextlib.suppress(SFMError, OSError):
                    self._notes.send(dest=name, **note)

    def begin_epoch(self, epoch: int) -> None:
        """Begin to count anew; what is left of earlier epochs goes."""
        self.epoch = epoch
        self.ledger.reset()
        self._forget()
        self._purge()

    def _purge(self) -> None:
        """Throw away what is left of calls of earlier epochs: its senders may wait for room."""
        begins = self.epoch << 32
        with contextlib.suppress(WouldBlock):
            while True:
                self.context.recv_nb(call=lambda number: number < begins)

    def raise_failure_of(self, place: int) -> None:
        """This member has given up a call in which we are: raise why."""
        deadline = time.monotonic() + 2.0  # it has told before it gave up
        while time.monotonic() < deadline:
            (self.outer or self).look()
            if not self.sfm.alive(self.members[place]):
                raise PeerLost(self.names[place], "and a collective call cannot go on without it")
            time.sleep(0.005)
        raise CollectiveError(f"{self.names[place]!r} has given up a collective call")

    # ---- what is done while a member waits ----

    def _tick(self) -> None:
        (self.outer or self)._note_in_time()
        self._look_around()
        if next(self._ticks) % LOOK_EVERY == 0:
            # An heir is alive, and knows nothing of this group.
            why = "and who has its name now is no member of the group"
            check_for_heirs(self.sfm, self.members, why)

    def _look_around(self) -> None:
        team = self.outer or self
        team.look()
        self._purge()
        if team.on_wait is not None:
            team.on_wait()

    def _note_in_time(self) -> None:
        """Called every 100 ms in a wait: between sites that may be the way alone."""
        if self._waits[0] != self.number:
            self._waits = self.number, 0
        self._waits = self.number, self._waits[1] + 1
        if self._waits[1] >= (FAR if len(self.sites) > 1 else 1):
            self.note()

    def note(self) -> None:
        """Tell the others which calls this member has made, once for each in which it waits."""
        if self._noted != self.number and self.ledger.count:
            self._noted = self.number
            self._tell({"made": self.calls, "epoch": self.epoch})

    def tick_at_tree(self, missing: list[int]) -> str:
        """Called every 100 ms while this member waits at the tree; see ``CombiningTree.meet``.

        Returns what observers are to know: who is missing.
        """
        # Without a note: members at a tree see for themselves who is in another call there, and
        # whoever waits for messages notes.
        self._look_around()
        if next(self._looks) % LOOK_EVERY == 0:
            # All have come, and it goes no further: who had to go on may be dead.
            for place in missing or range(self.size):
                if not self.sfm.alive(self.members[place]):
                    raise PeerLost(self.names[place], "and a collective call waits for it")
        waited_for = [self.names[place] for place in missing]
        team = self.outer or self  # the group that its program knows
        purpose = team.called(describe(team.ledger.made()[-1][0], ""))
        # Who is missing was found out after the last time that this was called.
        known, self._looked = self._looked, time.time()
        group = team.token, team.title
        return facts(
            "collective", waited_for, every=True, purpose=purpose, known=known, group=group
        )

    def _doing(self) -> str:
        """What observers are told of a receive: for which call it is."""
        team = self.outer or self
        self.context.group = (team.token, team.title)
        return team.called(describe(*team.ledger.made()[-1]))

    def look(self) -> None:
        """Read notes. Raises what they tell of the call that this member is in."""
        for note in [one for one in self._ahead if one["number"] <= self.number]:
            self._ahead.remove(note)
            self._hear_of_failure(note)
        while True:  # one by one: what the first says may end the call
            try:
                note = dict(self._notes.recv_nb())
            except WouldBlock:
                return
            if "failed" in note:
                self._hear_of_failure(note)
            elif note["epoch"] < self.epoch:  # it has not heard of the failure
                self._tell_again(note["src"])
            else:
                names = self.names[self.place], note["src"]
                self.compare(dict(zip(names, (self.calls, note["made"]), strict=True)))

    def _tell_again(self, name: Name) -> None:
        if self._failure is not None:
            with contextlib.suppress(SFMError, OSError):
                about = {"epoch": self.epoch - 1, "number": 0}
                self._notes.send(dest=name, **self._failure | about)

    @staticmethod
    def compare(made: Mapping[object, Mapping[int, str]]) -> None:
        """Raise CollectiveMismatch if these members have not made the same calls."""
        for number in sorted(set.intersection(*(set(calls) for calls in made.values()))):
            whats = {name: calls[number] for name, calls in made.items()}
            if len(set(whats.values())) > 1:
                raise CollectiveMismatch(whats)

    def _hear_of_failure(self, note: dict[str, Any]) -> None:
        if note["epoch"] < self.epoch:
            return  # we have raised in that epoch, too
        if note["number"] > self.number:
            # In a call that this member has not made yet. Whoever is that far has given what the
            # earlier ones need: those come to their end.
            self._ahead.append(note)
            return
        self._failure = {key: note[key] for key in ("failed", "lost", "calls", "cycle")}
        self.begin_epoch(note["epoch"] + 1)
        if note["calls"] is not None:
            raise Told(CollectiveMismatch(note["calls"]))
        if note["lost"] is not None:
            raise Told(PeerLost(note["lost"], "and a collective call cannot go on without it"))
        if note["cycle"] is not None:
            raise Told(DeadlockDetected(note["cycle"], note["failed"]))
        raise Told(CollectiveError(note["failed"]))


_teams: weakref.WeakSet[Team] = weakref.WeakSet()


def _hooks() -> Iterator[Callable[[], None]]:
    """What calls that members are in run while they wait: it may end the wait, or send."""
    for team in list(_teams):
        if team.on_wait is not None and team.ledger.busy:
            yield team.on_wait


hooks.append(_hooks)


_gone: dict[str, dict[str, Any]] = {}


def _account() -> dict[str, dict[str, Any]]:
    """Of the groups of this process that have called anything."""
    living = (one for one in list(_teams) if one.outer is None and one.ledger.count)
    return _gone | {one.token: one.account() for one in living}


accounts.append(_account)


class Told(BaseException):
    """A failure that another member has told us: it is raised here and told to nobody else.

    No Exception: the native core may overrule those, when the call was complete in that moment.
    """

    def __init__(self, failure: BaseException) -> None:
        super().__init__(failure)
        self.failure = failure
