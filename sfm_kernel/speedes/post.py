"""The messages of one node: how they are sent, and how what arrives is taken in.

A message to several nodes is written once for those on this machine (``blocks``), and sent once to
each other machine, where one of its receivers passes it on to the rest.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", sections 3.2, 3.3 and 3.6.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from sfm_kernel.errors import PeerLost, SFMError, UnknownName, WouldBlock
from sfm_kernel.speedes.blocks import Blocks, Place, Reader
from sfm_kernel.speedes.contents import Contents, Received, from_bytes
from sfm_kernel.speedes.machines import Tree, by_machine, tree
from sfm_kernel.speedes.members import MembersOnly
from sfm_kernel.speedes.whole import Whole

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message
    from sfm_kernel.transport.base import Member

SHARED_FROM = 128 << 10
"""Bytes from which a message to several nodes is written once. A smaller one is sent to each, which
is faster than looking after a block; from about 1 MB on, its sender saves time, too."""

LOOK_EVERY = 0.5
"""Seconds between two looks at whether those whom a call waits for live. Who is dead at two looks
is lost: what it sent before has come in by the second."""

AT_ONCE = 10_000
"""Messages that one call takes in at most, so that it ends however fast others send."""

AT_THE_END = 1_000_000
"""And so many when the node leaves."""

UNLIMITED = 1 << 62
"""Sends never wait until their receiver has received, as the paper says."""


class _Left(NamedTuple):
    """What a node that lives, but takes no further part, has told the others."""

    turn: int  # the last call of the group's collectives that it was in
    why: str


class Post:
    """Sends and takes in the messages of one group. For one thread.

    A message is lost to nobody when Stop ends a call: it waits in ``_taken`` until its handling
    begins, and where the handling itself is cut short, the node is broken (``whole``).

    Attributes:
        node, size: which node this is, of how many. others: all but this one.
        machines: the nodes of each. tree: this node's place in the tree of all nodes.
        handlers: kind -> what is done with a message of this kind, such as a barrier's.
        deliveries: kind -> where data go: called with a number (the type) and what was received.
        whole: what may only happen as a whole; if it does not, the others hear that we are gone.
        turn: gives the number of this node's latest collective call, which all nodes count alike.
    Args:
        session: how often the group was started. Messages of earlier times are thrown away.
        members: the processes by node.
        firsts: for each node the lowest node of its machine.
    """

    def __init__(
        self,
        sfm: Endpoint,
        group: int,
        session: int,
        members: Sequence[Member],
        firsts: Sequence[int],
    ) -> None:
        self._sfm, self._session = sfm, session
        self._members = list(members)
        self._names = [one.name for one in members]
        self.node, self.size = self._names.index(sfm.name), len(members)
        self.others = [node for node in range(self.size) if node != self.node]
        self._firsts = list(firsts)
        self.machines = by_machine(firsts)
        self.tree: Tree = tree(self.machines, self.node)
        self._context = MembersOnly(sfm, f"speedes {group}", members)
        self._context.buffering = UNLIMITED
        self._context.tick = self._tick
        own = members[self.node]
        nodes = {one.uid: node for node, one in enumerate(members)}
        self._blocks = Blocks(sfm.folder, own, group, lambda one: self._is_there(nodes[one.uid]))
        self._reader = Reader(sfm.folder, own, group)
        self._to_self: deque[tuple[str, int, Received]] = deque()
        self._taken: deque[Message] = deque()
        self._left: dict[int, _Left] = {}
        self._gone: set[int] = set()  # those dead to whom a message could not be sent
        self.whole = Whole(f"node {self.node} of group {group}", self._leave)
        self.turn: Callable[[], int] = int
        self._looked, self._dead = 0.0, frozenset[int]()
        self._lost: int | None = None
        self.handlers: dict[str, Callable[[Message], None]] = {
            "lost": self._hear_of_loss,
            "left": self._hear_who_left,
        }
        self.deliveries: dict[str, Callable[[int, Received], None]] = {}

    # ---- sending ----

    def tell(self, node: int, kind: str, **attributes: Any) -> None:
        """Send a few values to a node's handler. Whoever waits for one who is gone notices it."""
        with contextlib.suppress(PeerLost):
            self._write(node, kind=kind, node=self.node, **attributes)

    def send(self, dests: Iterable[int], kind: str, number: int, contents: Contents) -> None:
        """Send data to these nodes, this one among them if it is named.

        Raises PeerLost for a node that is gone; all the others get the message nevertheless.
        """
        about = {"kind": kind, "number": number, "node": self.node}
        here: list[int] = []
        elsewhere: dict[int, list[int]] = {}
        for node in dests:
            if node == self.node:
                self._to_self.append((kind, number, self._received(about, contents.copied())))
            elif self._firsts[node] == self._firsts[self.node]:
                here.append(node)
            else:
                elsewhere.setdefault(self._firsts[node], []).append(node)
        lost = self._spread(here, about, contents)
        for there in elsewhere.values():
            self._send_to_machine(there, about, contents, lost)
        if lost:
            gone = next(node for node, name in enumerate(self._names) if name == lost[0].peer)
            if gone not in self._left:  # who left has told all others
                self._spread_news(gone)  # they may wait for it
            raise lost[0]

    def _send_to_machine(
        self, nodes: list[int], about: dict[str, Any], contents: Contents, lost: list[PeerLost]
    ) -> None:
        """Send once, to the first of these nodes that lives; it passes the message on."""
        while nodes:
            first, *nodes = nodes
            try:
                self._send_one(first, about, contents, **({"to": nodes} if nodes else {}))
                return
            except PeerLost as error:
                lost.append(error)

    def _spread(
        self, nodes: Sequence[int], about: dict[str, Any], contents: Contents
    ) -> list[PeerLost]:
        """Send to nodes of this machine; returns the losses."""
        lost: list[PeerLost] = []
        places = self._share(nodes, contents) if contents.nbytes >= SHARED_FROM else {}
        try:
            for node in nodes:
                with _noting(lost):
                    if node in places:
                        self._send_place(node, places.pop(node), about, contents)
                    else:
                        self._send_one(node, about, contents)
        finally:
            for place in places.values():  # after an interrupt: these were not told
                self._blocks.forgo(place)
        return lost

    def _share(self, nodes: Sequence[int], contents: Contents) -> dict[int, Place]:
        """Write the data once for all these nodes, if there are several; where each finds them."""
        if len(nodes) < 2:
            return {}
        places = self._blocks.put(contents.bytes, [self._members[node] for node in nodes])
        return dict(zip(nodes, places, strict=True)) if places else {}

    def _send_place(
        self, node: int, place: Place, about: dict[str, Any], contents: Contents
    ) -> None:
        try:
            self._write(node, at=tuple(place), form=contents.form, **about)
        except SFMError:  # after an interrupt it may have been told, and reads it
            self._blocks.forgo(place)
            raise

    def _send_one(self, node: int, about: dict[str, Any], contents: Contents, **more: Any) -> None:
        self._write(node, payload=contents.payload, is_array=contents.is_array, **about, **more)

    def _write(self, to: int, /, **attributes: Any) -> None:
        """Send to a node. Raises PeerLost."""
        if to in self._left or to in self._gone:
            why = f": {self._left[to].why}" if to in self._left else ""
            raise PeerLost(self._names[to], f"and did not receive this message{why}")
        try:
            self._context.send(dest=self._names[to], session=self._session, **attributes)
        except (PeerLost, UnknownName) as error:  # it was there
            if not self._sfm.alive(self._members[to]):
                self._gone.add(to)
            if isinstance(error, PeerLost):
                raise
            raise PeerLost(self._names[to], "and did not receive this message") from None

    # ---- taking in ----

    def take_in(self) -> None:
        """Take in what has arrived, ``AT_ONCE`` messages at most. Never waits."""
        self._blocks.tend()
        self._take(AT_ONCE)
        self._handle_taken()

    def wait(self, call: str) -> None:
        """Take in one message, for which ``call`` waits.

        Blocks; Stop ends it. Raises PeerLost when a neighbour in the tree is gone, or told us that
        another node is: then what is waited for never comes.
        """
        self._context.doing = call
        self._taken.extend(starmap(self._context.recv, repeat((), 1)))
        self._handle_taken()
        self._raise_if_lost(call)

    def while_in_a_collective(self) -> None:
        """Called about every 100 ms while this node waits in a collective call of the group.

        Takes in, since others may need what this node has to pass on before they come. Makes no
        collective call. Raises PeerLost if a node has left that was never in this call.
        """
        self.take_in()
        now = self.turn()
        for node, left in self._left.items():
            if left.turn < now:
                raise PeerLost(self._names[node], f"while others waited for it: {left.why}")

    def _take(self, most: int) -> None:
        """Move what has arrived to ``_taken``.

        Between the inbox and there no Python runs, so that no signal can come in between.
        """
        with contextlib.suppress(WouldBlock):
            self._taken.extend(starmap(self._context.recv_nb, repeat((), most)))

    def _handle_taken(self) -> None:
        if not (self._to_self or self._taken):
            return
        with self.whole:
            while self._to_self:
                kind, number, received = self._to_self.popleft()
                self.deliveries[kind](number, received)
            while self._taken:
                self._handle(self._taken.popleft())

    def _tick(self) -> None:
        """Called now and then while ``wait`` finds nothing."""
        self.look_after(self.neighbours, str(self._context.doing))

    @property
    def neighbours(self) -> list[int]:
        """The nodes next to this one in the tree."""
        parent = [] if self.tree.parent is None else [self.tree.parent]
        return [*parent, *self.tree.children]

    def look_after(self, nodes: Iterable[int], call: str) -> None:
        """Now and then, see whether these nodes live. Raises PeerLost, and tells the others."""
        self._raise_if_lost(call)
        now = time.monotonic()
        if now < self._looked + LOOK_EVERY:
            return
        self._looked = now
        dead = frozenset(node for node in nodes if not self._is_there(node))
        gone, self._dead = dead & self._dead, dead
        if gone:
            self._spread_news(min(gone))
            self._raise_if_lost(call)

    def _raise_if_lost(self, call: str) -> None:
        if self._lost is not None:
            why = f": {self._left[self._lost].why}" if self._lost in self._left else ""
            raise PeerLost(self._names[self._lost], f"while others waited for it in {call}{why}")

    def _is_there(self, node: int) -> bool:
        """Whether a node lives and takes part."""
        return node not in self._left and self._sfm.alive(self._members[node])

    def _hear_of_loss(self, message: Message) -> None:
        self._spread_news(message.lost)

    def _hear_who_left(self, message: Message) -> None:
        self._left[message.node] = _Left(message.turn, message.why)

    def _spread_news(self, lost: int) -> None:
        if self._lost is None:
            self._lost = lost
            for node in self.neighbours:
                self.tell(node, "lost", lost=lost)

    def _handle(self, message: Message) -> None:
        if message.session != self._session:
            return  # sent before the group was started anew
        kind = message.kind
        if kind in self.handlers:
            self.handlers[kind](message)
            return
        about = {"kind": kind, "number": message.number, "node": message.node}
        data: Any
        if "at" in message:
            place, form = Place(*message.at), message.form
            data = self._reader.take(place, partial(from_bytes, form))
        else:
            contents = Contents.received(message.payload, message.is_array)
            if "to" in message:
                self._spread(message.to, about, contents)  # who is gone needs no message
            data = contents.delivered()
        self.deliveries[kind](message.number, self._received(about, data))

    def _received(self, about: dict[str, Any], data: Any) -> Received:
        type_ = about["number"] if about["kind"] == "message" else None
        return Received(data, type_, about["node"])

    # ---- the end ----

    def close(self) -> None:
        """Leave: pass on what is to be passed on, throw away the rest, and tell the others.

        What was sent is still received. Files of blocks go.
        """
        self._context.tick = None
        self._drain()
        if not self.whole.broken:  # or they were told
            self._leave("it has left the group")
        self._blocks.close()
        self._reader.close()

    def _drain(self) -> None:
        """Empty the inbox. Who is broken has told the others, who use their memory again: it must
        not be read any more."""
        self.deliveries = dict.fromkeys(self.deliveries, _throw_away)
        self._to_self.clear()
        with contextlib.suppress(SFMError, OSError):  # the endpoint may be closed
            self._take(AT_THE_END)
        while self._taken:
            message = self._taken.popleft()
            with contextlib.suppress(SFMError, OSError):
                if not self.whole.broken:
                    self._handle(message)

    def _leave(self, why: str) -> None:
        """Tell all others that this node takes no further part."""
        for node in self.others:
            with contextlib.suppress(SFMError, OSError):
                if self._is_there(node):
                    self.tell(node, "left", turn=self.turn(), why=why)


def _throw_away(number: int, received: Received) -> None:
    """Where data go that nobody will ask for."""


@contextlib.contextmanager
def _noting(lost: list[PeerLost]) -> Iterator[None]:
    """Go on after a loss, which is noted."""
    try:
        yield
    except PeerLost as error:
        lost.append(error)
