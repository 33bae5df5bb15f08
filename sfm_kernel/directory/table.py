"""The table of a world's members, and the rule by which a newcomer gets slot, rank and name.

Pure: no files, no sockets. ``LocalDirectory`` and ``DirectoryServer`` both keep a table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from sfm_kernel._native import MAX_MEMBERS
from sfm_kernel.directory.sites import check_site
from sfm_kernel.errors import BadName, NameInUse, WorldError, WorldFull
from sfm_kernel.transport.base import Member, Name

MAX_DEPARTED = 64
UID = re.compile(r"[0-9a-f]{32}")
PUBLIC = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class JoinRequest:
    """A process's request to join; ``Directory.join`` and ``Member`` explain the fields.

    Raises BadName or TypeError on invalid values.
    """

    uid: str
    pid: int
    host: str
    segment: str
    address: str
    name: Name | None = None
    rank: int | None = None
    guest: bool = False
    names: tuple[str, ...] = ()
    info: dict[str, Any] = field(default_factory=dict)
    site: str = ""
    public: str = ""

    def __post_init__(self) -> None:
        if self.public and not PUBLIC.fullmatch(self.public):
            raise BadName(f"public key {self.public!r}: 64 hexadecimal digits are needed")
        if not UID.fullmatch(self.uid):
            raise BadName(f"uid {self.uid!r}: 32 hexadecimal digits are needed")
        if self.rank is not None and (type(self.rank) is not int or self.rank < 0):
            raise BadName(f"rank {self.rank!r}: a rank is an int from 0")
        for name in (self.name, *self.names):
            _check_name(name)
        if self.site != "":
            check_site(self.site)
        if self.guest and (self.rank is not None or isinstance(self.name, int)):
            raise BadName(f"guest {self.name!r} asks for a rank, but guests have none")
        if isinstance(self.name, int) and self.rank not in (None, self.name):
            raise BadName(f"name {self.name} is the name of rank {self.name}, not {self.rank}")
        try:
            json.dumps(self.info)
        except (TypeError, ValueError) as error:
            raise TypeError(f"info must consist of JSON's types: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """The request as JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> JoinRequest:
        """The request from ``to_json``'s result; raises TypeError or ValueError if malformed."""
        return cls(**{**record, "names": tuple(record.get("names", ()))})


def _check_name(name: Name | None) -> None:
    if name is None or (type(name) is int and name >= 0):
        return
    if not isinstance(name, str) or not 0 < len(name) <= 64 or not name.isprintable():
        raise BadName(f"name {name!r}: use 1 to 64 printable characters, or a rank")


class Table:
    """The members of one world, by slot. At most one entry has a slot, a rank or a name.

    Dead processes stay until a newcomer takes their name or rank, so that a restarted process gets
    back its own and others can see which processes died.

    Attributes:
        departed: the processes that left, for each name the last one, at most ``MAX_DEPARTED``;
            for processes that wait for one of them.
    """

    def __init__(
        self,
        members: Iterable[Member] = (),
        next_slot: int = 0,
        departed: Iterable[Member] = (),
    ) -> None:
        self.members = sorted(members, key=lambda member: member.slot)
        self._next_slot = next_slot
        self.departed = list(departed)

    def admit(self, request: JoinRequest, lives: Callable[[Member], bool]) -> Member:
        """Enter a newcomer as ``Directory.join`` says. On an error the table is unchanged."""
        living = [member for member in self.members if member.uid != request.uid and lives(member)]
        if len(living) >= MAX_MEMBERS:
            raise WorldFull(f"the world has {MAX_MEMBERS} living processes, which is its limit")
        rank, name = self._choose(request, living)
        living_uids = {member.uid for member in living}
        others = [
            member
            for member in self.members
            if member.uid in living_uids
            or (
                member.uid != request.uid
                and member.name != name
                and (rank is None or member.rank != rank)
            )
        ]
        if len(others) == MAX_MEMBERS:  # a dead process makes room
            others.remove(next(member for member in others if member.uid not in living_uids))
        slot = self._free_slot(others)
        about = request.segment, request.address, request.info, request.site, request.public
        member = Member(request.uid, slot, rank, name, request.pid, request.host, *about)
        self.members = sorted([*others, member], key=lambda other: other.slot)
        self._next_slot = (slot + 1) % MAX_MEMBERS
        return member

    def _choose(self, request: JoinRequest, living: list[Member]) -> tuple[int | None, Name]:
        ranks = {member.rank: member for member in living if member.rank is not None}
        names = {member.name: member for member in living}
        name = request.name
        if request.guest:
            rank = None
            if name is None:
                homes = ("home" if n == 1 else f"home{n}" for n in range(1, MAX_MEMBERS + 1))
                name = next(home for home in homes if home not in names)
        else:
            rank = self._choose_rank(request, ranks, names)
            if rank in ranks:
                raise NameInUse(_in_use(f"rank {rank}", ranks[rank]))
            if name is None:
                name = request.names[rank] if rank < len(request.names) else rank
        if name in names:
            raise NameInUse(_in_use(f"the name {name!r}", names[name]))
        return rank, name

    def _choose_rank(
        self, request: JoinRequest, ranks: dict[int, Member], names: dict[Name, Member]
    ) -> int:
        if request.rank is not None:
            return request.rank
        if isinstance(request.name, int):
            return request.name
        former = [member.rank for member in self.members if member.name == request.name]
        given = [rank for rank, name in enumerate(request.names) if name == request.name]
        for rank in (*former, *given):
            if rank is not None and rank not in ranks:
                return rank
        rank = 0
        while rank in ranks or (
            # The name for this rank is taken: the next rank's may be free.
            request.name is None and rank < len(request.names) and request.names[rank] in names
        ):
            rank += 1
        return rank

    def _free_slot(self, members: list[Member]) -> int:
        # Cyclically: a slot is reused as late as possible, because receivers may not have examined
        # the last messages of its former process.
        used = {member.slot for member in members}
        slots = ((self._next_slot + n) % MAX_MEMBERS for n in range(MAX_MEMBERS))
        return next(slot for slot in slots if slot not in used)

    def find(self, uid: str) -> Member | None:
        """The entry with this uid; None if there is none."""
        return next((member for member in self.members if member.uid == uid), None)

    def remove(self, uid: str) -> bool:
        """Remove an entry; return whether there was one."""
        removed = self.find(uid)
        if removed is None:
            return False
        self.members = [member for member in self.members if member is not removed]
        others = [other for other in self.departed if other.name != removed.name]
        self.departed = [*others, replace(removed, info={})][-MAX_DEPARTED:]
        return True

    def dumps(self) -> bytes:
        """The table as text, for a file."""
        record = {
            "next_slot": self._next_slot,
            "members": [member.to_json() for member in self.members],
            "departed": [member.to_json() for member in self.departed],
        }
        return json.dumps(record).encode()

    @classmethod
    def loads(cls, text: bytes) -> Table:
        """The table that ``dumps`` wrote; raises WorldError if it is damaged."""
        try:
            record = json.loads(text)
            members = [Member.from_json(member) for member in record["members"]]
            departed = [Member.from_json(member) for member in record["departed"]]
            return cls(members, record["next_slot"], departed)
        except (ValueError, TypeError, KeyError) as error:
            raise WorldError(
                f"the world's table is damaged ({error}). End its processes, then run "
                f"`python -m sfm_kernel clean`"
            ) from error


def _in_use(taken: str, member: Member) -> str:
    return (
        f"{taken} belongs to a living process (pid {member.pid} on {member.host}). "
        f"Choose another, or end that process first"
    )
