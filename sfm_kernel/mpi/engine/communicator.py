"""What the handles of one communicator share."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from sfm_kernel.collectives import Group
from sfm_kernel.endpoint import UNBOUNDED, Busy, Context, Direct
from sfm_kernel.errors import PeerLost
from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG
from sfm_kernel.mpi.engine.receives import Posted
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.engine.process import Process

LOOK_EVERY = 1.0
"""Seconds between two looks at whether anybody is left who could still send."""

FIRST_CALL = "the first collective call of a communicator"
"""In which, for observers, its members make their group."""


class CommState:
    """A communicator: its members, and its spaces of messages.

    Attributes:
        process: this process.
        cid: its name, equal on all members, which no other communicator ever has.
        names, rank, size: the local group by rank, and this process's place in it.
        remote: the other group of an intercommunicator, else None.
        peers: to whom and from whom messages go, by rank: the remote group if there is one.
        ranks: the rank of each of them.
        context: its messages; ``send`` waits while too many were not received.
        loose: the same messages; ``send`` does not wait.
        direct: what its native sends and receives need.
        posted: its receives that wait for a message.
        attributes, name, errhandler, topology, info, freed: for ``Comm``.
        driver, worker, stop: for collectives; see ``comm.driver``.
    """

    def __init__(
        self,
        process: Process,
        cid: str,
        names: tuple[Name, ...],
        remote: tuple[Name, ...] | None = None,
    ) -> None:
        self.process, self.cid = process, cid
        self.names, self.remote = tuple(names), None if remote is None else tuple(remote)
        self.size = len(self.names)
        self.rank = self.names.index(process.sfm.name)
        self.peers = self.names if self.remote is None else self.remote
        self.ranks = {name: rank for rank, name in enumerate(self.peers)}
        self.context = Context(process.sfm, f"mpi {cid}", process.buffering)
        self.context.tick = self._look
        self.context.title = self._title
        self.loose = self.context.with_buffering(UNBOUNDED)
        self.posted = Posted(self.context)
        engine = process.engine
        self._parts = Context(process.sfm, f"mpi {cid} parts", UNBOUNDED)
        self.direct = self._ends(engine.busy)
        self.attributes: dict[Any, Any] = {}
        self.name: str = ""
        self.errhandler: Any = None
        self.topology: Any = None
        self.info: Any = None
        self.freed = False
        self.driver: Any = None
        self.stop: BaseException | None = None
        self.worker: Any = None
        self._group: Group | None = None
        self._within: dict[str, Context] = {}
        self._hidden: Context | None = None
        self.channels: dict[tuple[str, int, int], int] = {}
        self._partitions: CommState | None = None
        self._looked = time.monotonic()
        engine.communicators.add(self)

    def _ends(self, busy: Busy) -> Direct:
        return Direct(self.context, self._parts, self.peers, busy, ANY_SOURCE, ANY_TAG)

    def group(self) -> Group:
        """The local members, for collectives. Blocks, the first time, until all have come here."""
        if self._group is None:
            self._group = Group(
                self.process.sfm,
                self.names,
                name=f"mpi {self.cid}",
                on_wait=self.raise_stop,
                doing=FIRST_CALL,
            )
        return self._group

    def raise_stop(self) -> None:
        """Called by what waits in a collective in another thread than the one that was stopped."""
        if self.stop is not None:
            raise self.stop

    def another_group(self, purpose: str) -> Group:
        """A group of the same members whose calls may happen beside those of ``group``."""
        name = f"mpi {self.cid} {purpose}"
        return Group(self.process.sfm, self.names, name=name, doing=FIRST_CALL)

    def within(self, call: str) -> Context:
        """The same messages, to be received in this call of MPI: observers are told its name.

        A plain receive, which may be native as well, says by itself what it is.
        """
        if call in ("recv", "Recv"):
            return self.context
        if call not in self._within:
            context = self._within[call] = self.context.with_buffering(UNBOUNDED)
            context.tick, context.title, context.doing = self._look, self._title, call
        return self._within[call]

    @property
    def hidden(self) -> Context:
        """Messages between members that no user sees."""
        if self._hidden is None:
            self._hidden = Context(self.process.sfm, f"mpi {self.cid} hidden", UNBOUNDED)
        return self._hidden

    def partitions(self) -> CommState:
        """The same members, for messages of partitioned sends."""
        if self._partitions is None:
            cid = f"{self.cid} partitions"
            self._partitions = CommState(self.process, cid, self.names, self.remote)
        return self._partitions

    def fresh_id(self) -> str:
        """A ``cid`` that no other communicator has."""
        return secrets.token_hex(8)

    def forget_group(self) -> None:
        """The next collective makes the group anew: a member has died, and was replaced."""
        self._group = None

    def free(self) -> None:
        """This process gives it up. What was sent is delivered, what was begun goes on."""
        self.freed = True
        busy = Busy()
        busy.set(True)
        self.direct = self._ends(busy)
        self.process.engine.communicators.discard(self)

    def _title(self) -> str:
        return self.name or "a communicator without a name"

    def _look(self) -> None:
        """Raise PeerLost where nobody is left who could send; called while a receive waits."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY:
            return
        self._looked = now
        sfm = self.process.sfm
        others = [name for name in self.peers if name != sfm.name]
        living = {one.name for one in sfm.members() if sfm.alive(one)}
        if others and living.isdisjoint(others):
            raise PeerLost(others[0], "as all others of the communicator have")
