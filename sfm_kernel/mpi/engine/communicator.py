"""What the handles of one communicator share."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sfm_kernel.collectives import Group
from sfm_kernel.endpoint import UNBOUNDED, Busy, Context, Direct, caller
from sfm_kernel.errors import PeerLost
from sfm_kernel.mpi.base.constants import ANY_SOURCE, ANY_TAG
from sfm_kernel.mpi.engine.receives import Posted
from sfm_kernel.transport.base import Name

if TYPE_CHECKING:
    from sfm_kernel.mpi.engine.process import Process

LOOK_EVERY = 1.0
"""Seconds between two looks at whether anybody is left who could still send."""


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
        driver, worker: for collectives; see ``comm.driver``.
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
        self.context.title = self.title
        self.loose = self.context.with_buffering(UNBOUNDED)
        self.posted = Posted(self.context)
        engine = process.engine
        self._parts = Context(process.sfm, f"mpi {cid} parts", UNBOUNDED)
        self.direct = self._ends(engine.busy)
        self.attributes: dict[Any, Any] = {}
        self.name: str = ""
        call, line = caller()
        self._made = f"the communicator that {call} made in {line}" if call else ""
        self.errhandler: Any = None
        self.topology: Any = None
        self.info: Any = None
        self.freed = False
        self.driver: Any = None
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
                called=self._called,
                title=self.title(),
            )
        return self._group

    def another_group(self, purpose: str, on_wait: Callable[[], None] | None) -> Group:
        """A group of the same members whose calls may happen beside those of ``group``."""
        return Group(
            self.process.sfm,
            self.names,
            name=f"mpi {self.cid} {purpose}",
            on_wait=on_wait,
            called=self._called,
            title=self.title(),
        )

    def _called(self, text: str) -> str:
        """What observers are told of a collective call: the one that the program has made."""
        return f"{caller()[0] or text} of {self.title()}"

    def within(self, call: str) -> Context:
        """The same messages, to be received in this call of MPI: observers are told its name.

        A plain receive, which may be native as well, says by itself what it is.
        """
        if call in ("recv", "Recv"):
            return self.context
        if call not in self._within:
            context = self._within[call] = self.context.with_buffering(UNBOUNDED)
            context.tick, context.title, context.doing = self._look, self.title, call
        return self._within[call]

    @property
    def hidden(self) -> Context:
        """Messages between members that no user sees."""
        if self._hidden is None:
            self._hidden = Context(
                self.process.sfm, f"mpi {self.cid} hidden", UNBOUNDED, library=True
            )
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

    def title(self) -> str:
        """What observers are told that it is."""
        return self.name or self._made or "a communicator without a name"

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
