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
from typing import TYPE_CHECKING, Any

from sfm_kernel.errors import PeerLost, SFMError, UnknownName, WouldBlock
from sfm_kernel.speedes.blocks import Blocks, Place, Reader
from sfm_kernel.speedes.contents import Contents, Received, from_bytes
from sfm_kernel.speedes.machines import Tree, by_machine, tree

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

UNLIMITED = 1 << 62
"""Sends never wait until their receiver has received, as the paper says."""


class Post:
    """Sends and takes in the messages of one group. For one thread.

    Attributes:
        node, size: which node this is, of how many. others: all but this one.
        machines: the nodes of each. tree: this node's place in the tree of all nodes.
        handlers: kind -> what is done with a message of this kind, such as a barrier's.
        deliveries: kind -> where data go: called with a number (the type) and what was received.
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
        self._context = sfm.context(f"speedes {group}")
        self._context.buffering = UNLIMITED
        self._context.tick = self._tick
        own = members[self.node]
        self._blocks = Blocks(sfm.folder, own, group, sfm.alive)
        self._reader = Reader(sfm.folder, own, group)
        self._to_self: deque[tuple[str, int, Received]] = deque()
        self._looked, self._dead = 0.0, frozenset[int]()
        self._lost: int | None = None
        self.handlers: dict[str, Callable[[Message], None]] = {"lost": self._hear_of_loss}
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
            gone = [node for node, name in enumerate(self._names) if name == lost[0].peer]
            self._spread_news(gone[0])  # others may wait for it
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
        try:
            self._context.send(dest=self._names[to], session=self._session, **attributes)
        except UnknownName:  # it was there
            raise PeerLost(self._names[to], "and did not receive this message") from None

    # ---- taking in ----

    def take_in(self) -> None:
        """Take in what has arrived, ``AT_ONCE`` messages at most. Never waits."""
        self._blocks.tend()
        while self._to_self:
            kind, number, received = self._to_self.popleft()
            self.deliveries[kind](number, received)
        try:
            for _ in range(AT_ONCE):
                self._handle(self._context.recv_nb())
        except WouldBlock:
            pass

    def wait(self, call: str) -> None:
        """Take in one message, for which ``call`` waits.

        Blocks; Stop ends it. Raises PeerLost when a neighbour in the tree is gone, or told us that
        another node is: then what is waited for never comes.
        """
        self._context.doing = call
        self._handle(self._context.recv())
        self._raise_if_lost(call)

    def _tick(self) -> None:
        """Called now and then while ``wait`` finds nothing."""
        self.look_after(self.neighbours, self._context.doing)

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
        dead = frozenset(node for node in nodes if not self._sfm.alive(self._members[node]))
        gone, self._dead = dead & self._dead, dead
        if gone:
            self._spread_news(min(gone))
            self._raise_if_lost(call)

    def _raise_if_lost(self, call: str) -> None:
        if self._lost is not None:
            raise PeerLost(self._names[self._lost], f"while others waited for it in {call}")

    def _hear_of_loss(self, message: Message) -> None:
        self._spread_news(message.lost)

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

    def close(self) -> None:
        """Remove the files of blocks; what was sent is still received."""
        self._context.tick = None
        self._blocks.close()
        self._reader.close()


@contextlib.contextmanager
def _noting(lost: list[PeerLost]) -> Iterator[None]:
    """Go on after a loss, which is noted."""
    try:
        yield
    except PeerLost as error:
        lost.append(error)
