"""The contract between an endpoint and its transports.

A *transport* belongs to one endpoint. It receives (in any thread) and puts what arrives into the
endpoint's inbox; and it makes *routes*, one for each peer, through which the endpoint sends.
``tests/contract`` holds one suite that every transport passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from sfm_kernel._native import Member, Name

if TYPE_CHECKING:
    from sfm_kernel._native import Channel
    from sfm_kernel.transport.keys import KeyPair


@dataclass(frozen=True)
class _Record:
    """An entry of the directory."""

    def to_json(self) -> dict[str, Any]:
        """The entry as JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Self:
        """The entry that ``to_json`` described; raises TypeError on a malformed record."""
        return cls(**record)


@dataclass(frozen=True)
class Gateway(_Record):
    """A gateway of a site, as the directory server knows it.

    Attributes:
        uid: 32 hexadecimal digits, new each time one starts.
        site: the name of its site.
        address: processes of its site, and other gateways, connect to it ("tcp://10.0.0.7:4000").
        name: for people: "A-1", the first of site A.
    """

    uid: str
    site: str
    address: str
    name: str


@dataclass(frozen=True)
class Changes:
    """What a directory has seen since it reported last.

    Attributes:
        gateways: the world's, as they are now.
        members: all entries, as they are now.
        departed: uids of members that have left or died meanwhile, and why (see ``why_departed``).
    """

    gateways: list[Gateway]
    members: list[Member]
    departed: dict[str, str]


class DirectoryClient(Protocol):
    """Asks the directory server of a world of several machines."""

    @property
    def zmq_context(self) -> int:
        """The address of its ZeroMQ context, whose thread can serve others' sockets, too. It ends
        with the last that has it."""

    def exchange(
        self, kind: str, body: bytes = b"", limit: float = ..., **details: Any
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The answer to a request, and the bytes that came with it.

        Raises:
            WorldGone: no answer came within ``limit`` seconds.
        """


@runtime_checkable
class Directory(Protocol):
    """The list of a world's members. Implemented by ``sfm_kernel.directory``."""

    @property
    def world(self) -> str: ...
    @property
    def folder(self) -> str:
        """The world's folder on this machine (0700), where segments and rings live."""

    @property
    def key(self) -> bytes:
        """The world's 32-byte secret; all other keys are derived from it."""

    @property
    def pair(self) -> KeyPair:
        """This process's own pair of keys, drawn anew for each opened directory."""

    @property
    def client(self) -> DirectoryClient | None:
        """The client of the world's directory server; None in a world of one machine."""

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
        info: dict[str, Any] = ...,
        site: str = "",
    ) -> Member:
        """Register and return the member with its slot, rank and name.

        Without ``rank``, a member that is no guest gets the rank of a dead member of the same
        name, else the lowest rank that no living member has. ``names[rank]`` is its name if
        ``name`` is None; without either, the name is the rank. The entry of a dead member with
        the same name or rank is replaced. An empty ``site`` is that of the machine. A member that
        listens is announced with the public half of ``pair``.

        Raises:
            NameInUse: a living member has this name or rank.
            WorldFull: ``_native.MAX_MEMBERS`` members live.
            WorldGone: the directory does not answer or was removed.
            EndpointClosed: this client was closed.
        """

    def leave(self, member: Member) -> None:
        """Remove the entry of this process, or of one that has died; harmless if it or the world
        no longer exists.

        Raises WorldAccess if it is that of another living process of a world of several machines.
        """

    def members(self) -> list[Member]:
        """All entries as they are now, by slot, including dead members that nobody has replaced.

        Raises: as ``join``.
        """

    def listed(self) -> list[Member]:
        """The entries that this client knows, without asking a remote directory; a process that
        has just joined may be missing.

        Raises: as ``join``.
        """

    def departed(self) -> list[Member]:
        """Members that left lately, the last of each name; without the dead that were replaced.

        Raises: as ``join``.
        """

    def alive(self, member: Member) -> bool:
        """Whether this incarnation still runs and has not left; cheap enough for every 100 ms."""

    def why_departed(self, member: Member) -> str:
        """The reason why a process is no longer in the world, or this one, for an error.

        "" if it left or died by itself.
        """

    def watch(self, changed: Callable[[Changes], None]) -> None:
        """Call ``changed`` now, and whenever the gateways change or a member joins, leaves or dies.

        It is called in any thread.
        """

    def close(self) -> None:
        """Release the client's resources. Does not leave."""


@dataclass(frozen=True, eq=False)
class Route:
    """One incarnation of a peer, and the channel through which the core sends to it.

    The channel is released with the route. Messages that were sent are still delivered.
    """

    peer: Member
    channel: Channel

    @property
    def kind(self) -> str:
        """``"shm"``, ``"zmq"``, ``"gateway"`` or ``"inproc"``."""
        return self.channel.kind


class Transport(ABC):
    """One endpoint's access to one medium."""

    kind: str = ""

    @abstractmethod
    def route(self, peer: Member, alive: Callable[[], bool]) -> Route | None:
        """A route to ``peer``, or None if this medium does not reach it.

        ``alive()`` says whether the peer's incarnation still lives.
        """

    def is_near(self, peer: Member) -> bool:
        """Whether ``peer`` is reached through memory, so that files of the folder are shared."""
        return False

    def lost(self, peer: Member) -> bool:
        """Whether this medium has noticed that the peer has ended (a refused connection)."""
        return False

    def why_lost(self, peer: Member) -> str:
        """The reason for ``lost``, as a text for an error; "" if the peer died or left."""
        return ""

    def silence(self, peer: Member) -> tuple[float, str] | None:
        """Seconds for which this medium has failed to reach the peer, and the reason ("" if it is
        unknown); None while it reaches the peer."""
        return None

    def settled(self, peer: Member) -> bool:
        """Whether all that a dead peer had sent has arrived, as far as the medium can know."""
        return True

    @abstractmethod
    def close(self) -> None:
        """Stop threads and release everything; messages sent before are still delivered."""
