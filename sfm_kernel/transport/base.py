"""The contract between an endpoint and the ways that lead to its peers.

A *transport* belongs to one endpoint. It receives (in whatever thread it likes) and puts what
arrives into the endpoint's inbox; and it makes *routes*, one for each peer, through which the
endpoint sends. ``tests/contract`` holds one suite that every transport passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from sfm_kernel._native import Channel

Name = str | int


@dataclass(frozen=True)
class Member:
    """One incarnation of a process of a world, as the directory knows it.

    Attributes:
        uid: 32 hexadecimal digits, new each time a process joins.
        slot: a number below ``_native.MAX_MEMBERS``, unique among the living members.
        rank: 0, 1, 2 … for those who compute; None for a guest, such as a notebook.
        name: what addresses it; the rank where the user gave no other name.
        pid, host: for people; never used to tell whether it lives.
        segment: path of its segment on its own machine.
        address: where it listens ("tcp://10.0.0.7:41234"); empty where it was not told to.
        info: anything a front end wants others to see (ipyparallel's engine id, for one).
        site: where it is, with those who have the same; its machine, where it was told nothing.
    """

    uid: str
    slot: int
    rank: int | None
    name: Name
    pid: int
    host: str
    segment: str
    address: str
    info: dict[str, Any] = field(default_factory=dict, compare=False, hash=False)
    site: str = ""

    def __post_init__(self) -> None:
        if not self.site:
            object.__setattr__(self, "site", site_of_host(self.host))

    def told(self) -> dict[str, Any]:
        """What observers are told of who it is."""
        return {key: getattr(self, key) for key in ("name", "rank", "pid", "host", "site", "uid")}

    def to_json(self) -> dict[str, Any]:
        """The member as JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Member:
        """The member that ``to_json`` described; raises TypeError on a malformed record."""
        return cls(**record)


def site_of_host(host: str) -> str:
    """The site of a machine that was given none: its name, or what of that a site's can be."""
    kept = "".join(one for one in host if one.isprintable() and not one.isspace())
    return kept[:64] or "localhost"


@dataclass(frozen=True)
class Gateway:
    """A gateway of a site, as the directory server knows it.

    Attributes:
        uid: 32 hexadecimal digits, new each time one starts.
        site: the name of its site.
        address: where processes of its site, and other gateways, connect ("tcp://10.0.0.7:4000").
        name: for people: "A-1", the first of site A.
    """

    uid: str
    site: str
    address: str
    name: str

    def to_json(self) -> dict[str, Any]:
        """The gateway as JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Gateway:
        """The gateway that ``to_json`` described; raises TypeError on a malformed record."""
        return cls(**record)


class DirectoryClient(Protocol):
    """Asks the directory server of a world of several machines."""

    def exchange(
        self, what: str, body: bytes = b"", limit: float = ..., **details: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request, and the bytes that came with it.

        Raises:
            WorldGone: there is none within ``limit`` seconds.
        """


@runtime_checkable
class Directory(Protocol):
    """Who is in a world. Implemented by ``sfm_kernel.directory``."""

    @property
    def world(self) -> str: ...
    @property
    def folder(self) -> str:
        """The world's folder on this machine (0700), where segments and rings live."""

    @property
    def key(self) -> bytes:
        """The world's 32-byte secret; all other keys are derived from it."""

    @property
    def client(self) -> DirectoryClient | None:
        """What asks the world's directory server; None in a world of one machine."""

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
        """Register and return the member with its slot, rank and name.

        Without ``rank``, a member that is no guest gets the rank of a dead member of the same
        name, else the lowest rank that no living member has. ``names[rank]`` is its name if
        ``name`` is None; without either, the name is the rank. The entry of a dead member with
        the same name or rank is replaced. An empty ``site`` is that of the machine.

        Raises:
            NameInUse: a living member has this name or rank.
            WorldFull: ``_native.MAX_MEMBERS`` members live.
            WorldGone: the directory does not answer or was removed.
            EndpointClosed: this client was closed.
        """

    def leave(self, member: Member) -> None:
        """Take the entry out; harmless if it is not there (any more) or the world is gone."""

    def members(self) -> list[Member]:
        """All entries as they are now, the dead that nobody replaced among them, by slot.

        Raises: as ``join``.
        """

    def listed(self) -> list[Member]:
        """The entries as they are known here, at no cost where the directory is far away; who has
        just joined may be missing.

        Raises: as ``join``.
        """

    def departed(self) -> list[Member]:
        """Who left lately, by name the last one; not who died and was replaced.

        Raises: as ``join``.
        """

    def alive(self, member: Member) -> bool:
        """Whether this incarnation still runs and has not left; cheap enough for every 100 ms."""

    def watch(self, changed: Callable[[list[Gateway], list[str]], None]) -> None:
        """Have ``changed`` called now, and whenever there are other gateways, or somebody is gone.

        With the world's gateways, and the uids of those who have left or died since the last call;
        in any thread.
        """

    def close(self) -> None:
        """Release what the client holds. Does not leave."""


@dataclass(frozen=True, eq=False)
class Route:
    """The way to one incarnation of a peer: who that is, and what the core sends through.

    What the way holds goes with it. What was sent is still delivered.
    """

    peer: Member
    channel: Channel

    @property
    def kind(self) -> str:
        """``"shm"``, ``"tcp"``, ``"gateway"`` or ``"inproc"``."""
        return self.channel.kind


class Transport(ABC):
    """One endpoint's access to one medium."""

    kind: str = ""

    @abstractmethod
    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        """A route to ``peer``, or None where this medium does not reach it.

        ``alive()`` says whether the peer's incarnation still lives.
        """

    def is_near(self, peer: Member) -> bool:
        """Whether ``peer`` is reached through memory, so that files of the folder are shared."""
        return False

    def lost(self, peer: Member) -> bool:
        """Whether this medium itself has seen that the peer is gone (a refused connection)."""
        return False

    def why_lost(self, peer: Member) -> str:
        """What is to be said of why ``lost``, in brackets; "" where it only died or left."""
        return ""

    def silence(self, peer: Member) -> tuple[float, str] | None:
        """Seconds for which this medium has tried in vain to reach the peer, and what is known of
        why ("" if nothing is); None while it does reach it."""
        return None

    def settled(self, peer: Member) -> bool:
        """Whether all that a dead peer had sent has come in, as far as the medium can know."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Stop threads and release everything; what was sent before is still delivered."""
