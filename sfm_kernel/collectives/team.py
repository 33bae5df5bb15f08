"""The shared state of a group's members: the numbers of their calls, failures, liveness.

A call has a number, which all members count alike, and a *chain*: a hash of this call and all calls
before it. Its messages carry both, so that a receiver sees at once if the sender is in another call
or has made another one: two calls that do not match, such as a broadcast and a reduction, may both
have returned. Members that wait for each other for ever because their calls do not match send no
such messages. A member that has waited for 100 ms (2 s if the group has several sites) therefore
sends a *note* with its calls to all others, and the reader of a note compares.

When a call fails on one member, the member sends a note to all others and begins a new *epoch*.
Members that wait read the note within 100 ms, raise the failure, and begin the same epoch. Numbers
start anew, and messages of older epochs are dropped. So every member raises a failure once, and the
group can go on.

The death of a member is noticed by the members that wait for it: they raise ``PeerLost`` and send
notes. To the others it does not matter who has done its part of a call and has left, even if
another process has its name now.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel._native import CombiningTree, Ledger
from sfm_kernel.collectives.made import Placed, describe, in_line
from sfm_kernel.collectives.meeting import check_for_heirs, reported
from sfm_kernel.directory import Member, Name
from sfm_kernel.endpoint import BUFFERING, Context, Endpoint, facts
from sfm_kernel.endpoint.bystanders import hooks
from sfm_kernel.endpoint.seen import accounts
from sfm_kernel.endpoint.weak import listed
from sfm_kernel.errors import (
    CollectiveError,
    CollectiveMismatch,
    DeadlockDetected,
    PeerLost,
    SFMError,
    WouldBlock,
)

if TYPE_CHECKING:
    from sfm_kernel.collectives.area import Area
    from sfm_kernel.collectives.levels import Shape

DEATH_TICKS = 5
"""Ticks of 100 ms between two checks for dead members. A waiting member reads notes at each."""

SITES_TICKS = 20
"""Ticks of 100 ms after which a waiting member of a group with several sites sends a note. A note
goes to every other member: sent earlier, notes would multiply the messages of slow calls."""

LATEST = 16
"""Number of a group's last calls in its account at the end of a program."""

MOST_DELETED = 64
"""Number of deleted groups whose accounts are kept until the end of a program."""


class Team:
    """One member's state of a group.

    Args:
        token: identifies the group; see ``meeting``.
        outer: the team whose level this team is (see ``levels``); it handles the failures.
    Attributes:
        rank: this member's rank in the group.
        called: maps the text of a call to the text that observers show.
        title: the group's title for observers.
        sites: the ranks of the members at each site; sites by their first member.
    """

    def __init__(
        self, sfm: Endpoint, members: Sequence[Member], token: str, outer: Team | None = None
    ) -> None:
        self.sfm, self.members, self.outer = sfm, list(members), outer
        self.names: list[Name] = [member.name for member in members]
        self.size = len(self.members)
        self.rank = [member.uid for member in members].index(sfm.uid)
        self.token = token
        # A program that turns buffering off must hang at its own messages, not at these.
        self.context = Context(sfm, f"collective {token}", BUFFERING, library=True)
        self.context.tick = self._tick
        self.context.private = True
        self.context.doing = self._purpose
        self.context.in_group = (outer or self).names
        self.called: Callable[[str], str] = str
        self.title = ""
        notes = f"collective {token} notes"
        self._notes = Context(sfm, notes, BUFFERING, news=True, library=True)
        self.is_local = all(map(sfm.shares_memory_with, members))
        sites: dict[str, list[int]] = {}
        for rank, member in enumerate(members):
            sites.setdefault(member.site, []).append(rank)
        self.sites = list(sites.values())
        self.epoch = 0
        self.ledger = Ledger()
        self.marks: dict[str, int] = {}
        self.on_wait: Callable[[], None] | None = None
        _teams.add(self)
        self.awaited = self.rank  # the member from which a message is to come
        self._noted = -1
        self._waits = -1, 0
        self._checked = time.time()  # no member was missing at the tree before
        self._failure: dict[str, Any] | None = None
        self._ahead: list[dict[str, Any]] = []
        self._ticks, self._tree_ticks = itertools.count(1), itertools.count(1)
        self._forget()

    def _forget(self) -> None:
        """Forget the state of an epoch: memory, and the teams of the levels."""
        self.area: Area | None = None
        self.no_area: int | None = None
        self.shape: Shape | None = None
        self.inner: dict[str, Team] = {}

    # ---- calls ----

    @property
    def number(self) -> int:
        """The number of this member's current or last call."""
        return (self.epoch << 32) + self.ledger.count

    @property
    def calls(self) -> dict[int, Placed]:
        """The latest calls by their numbers."""
        made = self.ledger.made()
        first = self.number - len(made) + 1
        placed = ((describe(*call), in_line(location)) for call, location in made)
        return dict(enumerate(placed, first))

    @property
    def tree(self) -> CombiningTree:
        """The memory that the members share. Raises SegmentFull if there is no room for it."""
        if self.ledger.tree is None:
            if not self.is_local:
                raise CollectiveError("flags need members that share memory: use two-level")
            path = self.path("tree", self.epoch)
            self.ledger.tree = self.sfm.tree(path, self.fresh_path(), self.size, self.rank)
        return self.ledger.tree

    def path(self, kind: str, number: int) -> str:
        """The path of a file of the group. It is named after the group's first member: when that is
        dead, the file may be removed."""
        mark = hashlib.blake2b(f"{self.token} {kind} {number}".encode(), digest_size=16)
        return os.path.join(self.sfm.folder, f"{self.members[0].uid}-{mark.hexdigest()}.tree")

    def fresh_path(self) -> str:
        """A path for a file that is not complete yet. When this process is dead, the file may be
        removed."""
        return os.path.join(self.sfm.folder, f"{self.sfm.uid}-{secrets.token_hex(16)}.new")

    def mark(self, text: str) -> int:
        """A number for the text of a call, the same in all processes."""
        if text not in self.marks:
            if len(self.marks) > 1000:
                self.marks.clear()
            digest = hashlib.blake2b(text.encode(), digest_size=7).digest()
            self.marks[text] = int.from_bytes(digest, "little")
        return self.marks[text]

    def account(self) -> dict[str, Any]:
        """See ``Account`` in ``endpoint/seen.py``."""
        about = {"title": self.title, "name": self.names[self.rank], "size": self.size}
        about |= {"count": self.ledger.count, "chain": self.ledger.chain}
        about |= {"open": self.epoch > 0 or self.ledger.busy}
        latest = list(self.calls.items())[-LATEST:]
        return about | {"latest": [(number, *call) for number, call in latest]}

    def __del__(self, is_over: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_over():  # accounts are no longer asked for, and NumPy's names cannot be made
            return
        ledger = getattr(self, "ledger", None)  # None if the constructor has failed
        is_used = ledger is not None and ledger.count > 0 and self.outer is None
        if is_used and len(_deleted) < MOST_DELETED:
            _deleted[self.token] = self.account()

    # ---- failures ----

    def known(self, failure: BaseException) -> BaseException:
        """The error to raise if all members of this team know the failure already."""
        return failure if self.outer else KnownFailure(failure)

    def fail(self, failure: BaseException) -> None:
        """Report to all others that this member's call has failed, and begin a new epoch."""
        lost = failure.peer if isinstance(failure, PeerLost) else None
        calls = failure.calls if isinstance(failure, CollectiveMismatch) else None
        cycle = failure.cycle if isinstance(failure, DeadlockDetected) else None
        call = "".join(self.calls.get(self.number, ("a collective call",)))
        text = f"{self.names[self.rank]!r} could not go on in {call}: "
        text += f"{type(failure).__name__}: {failure}".rstrip(": ")
        if isinstance(failure, (CollectiveError, DeadlockDetected)):
            text = str(failure)
        # A member that has died, or made another call, cannot take part in earlier calls either.
        for_all = lost is not None or isinstance(failure, CollectiveMismatch)
        about = {"epoch": self.epoch, "number": 0 if for_all else self.number}
        self._failure = {"failed": text, "lost": lost, "calls": calls, "cycle": cycle, **about}
        trees = [(self, self.ledger.tree)]
        trees += [(inner, inner.ledger.tree) for inner in self.inner.values()]
        try:
            self._send_note(self._failure)
            for team, tree in trees:
                if tree is not None:
                    tree.abandon()
                    with contextlib.suppress(OSError):  # the tree was not complete
                        os.unlink(team.path("tree", team.epoch))
        finally:  # Stop may be pressed twice
            self.begin_epoch(self.epoch + 1)

    def _send_note(self, note: dict[str, Any]) -> None:
        for rank, name in enumerate(self.names):
            if rank != self.rank:
                # A dead member needs no note, and an error here must not hide the failure.
                with contextlib.suppress(SFMError, OSError):
                    self._notes.send(dest=name, **note)

    def begin_epoch(self, epoch: int) -> None:
        """Begin to count anew, and drop the messages of earlier epochs."""
        self.epoch = epoch
        self.ledger.reset()
        self._forget()
        self._purge()

    def _purge(self) -> None:
        """Drop the messages of earlier epochs: their senders may wait for room."""
        begins = self.epoch << 32
        with contextlib.suppress(WouldBlock):
            while True:
                self.context.recv_nb(call=lambda number: number < begins)

    def raise_failure_of(self, rank: int) -> None:
        """Raise the reason why this member has given up the current call."""
        deadline = time.monotonic() + 2.0  # the member has sent its note before it gave up
        while time.monotonic() < deadline:
            (self.outer or self).read_notes()
            if not self.sfm.alive(self.members[rank]):
                raise PeerLost(self.names[rank], "and a collective call cannot go on without it")
            time.sleep(0.005)
        raise CollectiveError(f"{self.names[rank]!r} has given up a collective call")

    # ---- while a member waits ----

    def _tick(self) -> None:
        (self.outer or self)._note_in_time()
        self._check()
        if next(self._ticks) % DEATH_TICKS == 0:
            # A new process with a dead member's name is alive, but not in this group.
            why = "and the process that has its name now is no member of the group"
            check_for_heirs(self.sfm, [self.members[self.awaited]], why)

    def _check(self) -> None:
        team = self.outer or self
        team.read_notes()
        self._purge()
        if team.on_wait is not None:
            team.on_wait()

    def _note_in_time(self) -> None:
        """Send a note after some ticks of a wait. Between sites a message may take that long."""
        number, ticks = self._waits
        self._waits = self.number, (ticks + 1 if number == self.number else 1)
        if self._waits[1] >= (SITES_TICKS if len(self.sites) > 1 else 1):
            self.note()

    def note(self) -> None:
        """Send this member's calls to the others, once for each call in which it waits."""
        if self._noted != self.number and self.ledger.count:
            self._noted = self.number
            self._send_note({"made": self.calls, "epoch": self.epoch})

    def tick_at_tree(self, missing: list[int]) -> str:
        """Called every 100 ms while this member waits at the tree; see ``CombiningTree.meet``.

        Returns the facts for observers: which members are missing.
        """
        # No note is needed: members at a tree see there if another is in a different call, and
        # members that wait for messages send notes.
        self._check()
        if next(self._tree_ticks) % DEATH_TICKS == 0:
            # If none is missing, the member that had to complete the round may be dead.
            for rank in missing or range(self.size):
                if not self.sfm.alive(self.members[rank]):
                    raise PeerLost(self.names[rank], "and a collective call waits for it")
        waited_for = [self.names[rank] for rank in missing]
        team = self.outer or self  # the group that the program knows
        purpose = team.called(describe(team.ledger.made()[-1][0][0], ""))
        # ``missing`` was determined after the previous tick.
        known, self._checked = self._checked, time.time()
        about: dict[str, Any] = {"group": (team.token, team.title), "members": team.names}
        return facts("collective", waited_for, every=True, purpose=purpose, known=known, **about)

    def _purpose(self) -> str:
        """The call for which this member receives, in words, for observers."""
        team = self.outer or self
        self.context.group = (team.token, team.title)
        return team.called(describe(*team.ledger.made()[-1][0]))

    def read_notes(self) -> None:
        """Read notes. Raises the failures that they report of the current call."""
        for note in [note for note in self._ahead if note["number"] <= self.number]:
            self._ahead.remove(note)
            self._take_failure(note)
        while True:  # one by one: a note may end the call
            try:
                note = dict(self._notes.recv_nb())
            except WouldBlock:
                return
            if "failed" in note:
                self._take_failure(note)
            elif note["epoch"] < self.epoch:  # its sender does not know of the failure
                self._repeat_failure(note["src"])
            else:
                names = self.names[self.rank], note["src"]
                self.compare(dict(zip(names, (self.calls, note["made"]), strict=True)))

    def _repeat_failure(self, name: Name) -> None:
        if self._failure is not None:
            with contextlib.suppress(SFMError, OSError):
                about = {"epoch": self.epoch - 1, "number": 0}
                self._notes.send(dest=name, **self._failure | about)

    def compare(self, made: Mapping[object, Mapping[int, Placed]]) -> None:
        """Raise CollectiveMismatch if these members have not made the same calls."""
        for number in sorted(set.intersection(*(set(calls) for calls in made.values()))):
            calls = {name: calls[number] for name, calls in made.items()}
            if len({text for text, _ in calls.values()}) > 1:
                raise self.mismatch({name: "".join(call) for name, call in calls.items()})

    def mismatch(self, calls: Mapping[object, str]) -> CollectiveMismatch:
        """The error about these members' calls."""
        return CollectiveMismatch(calls, (self.outer or self).title)

    def _take_failure(self, note: dict[str, Any]) -> None:
        if note["epoch"] < self.epoch:
            return  # this member has raised in that epoch, too
        if note["number"] > self.number:
            # The failure is in a call that this member has not made yet. The failed member has sent
            # all that earlier calls need: these can complete.
            self._ahead.append(note)
            return
        self._failure = {key: note[key] for key in ("failed", "lost", "calls", "cycle")}
        self.begin_epoch(note["epoch"] + 1)
        if note["calls"] is not None:
            raise KnownFailure(self.mismatch(note["calls"]))
        raise KnownFailure(reported(note, "and a collective call cannot go on without it"))


_teams: weakref.WeakSet[Team] = weakref.WeakSet()


def _hooks() -> Iterator[Callable[[], None]]:
    """The ``on_wait`` of groups whose members wait in a call; it may end the wait, or send."""
    for team in listed(_teams.copy):
        if team.on_wait is not None and team.ledger.busy:
            yield team.on_wait


hooks.append(_hooks)

_deleted: dict[str, dict[str, Any]] = {}


def _account() -> dict[str, dict[str, Any]]:
    """The accounts of this process's groups that have made calls."""
    living = (team for team in list(_teams) if team.outer is None and team.ledger.count)
    return _deleted | {team.token: team.account() for team in living}


accounts.append(_account)


class KnownFailure(BaseException):
    """A failure that the other members know: it is raised, and not reported again.

    It is no Exception: the native core drops an Exception if the call completes at that moment.
    """

    def __init__(self, failure: BaseException) -> None:
        super().__init__(failure)
        self.failure = failure
