"""The messages of one node: sends them, and takes in those that arrive.

A message to several nodes is written once for the receivers on this machine (``blocks``), and sent
once to each other machine, where one of its receivers passes it on to the others.

Source: the paper of ``sfm_kernel.speedes``, sections 3.2, 3.3 and 3.6.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import repeat, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from sfm_kernel.errors import PeerLost, SFMError, UnknownName, WouldBlock
from sfm_kernel.speedes.atomic import Atomic
from sfm_kernel.speedes.blocks import Blocks, HeaderRef, Reader
from sfm_kernel.speedes.contents import Contents, Received, from_bytes
from sfm_kernel.speedes.machines import Tree, by_machine, tree
from sfm_kernel.speedes.members import MembersOnly

if TYPE_CHECKING:
    from sfm_kernel.directory import Member
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

SHARED_FROM = 128 << 10
"""Bytes from which a message to several nodes is written once. A smaller message is sent to each,
which is faster than managing a block; from about 1 MB on, its sender saves time as well."""

CHECK_INTERVAL = 0.5
"""Seconds between two checks for dead nodes. A node that is dead at two checks is lost: by the
second, all its messages have arrived."""

AT_ONCE = 10_000
"""Number of messages that one call takes in at most, so that it ends however fast others send."""

AT_THE_END = 1_000_000
"""Number of messages that a node takes in at most when it leaves."""

UNLIMITED = 1 << 62
"""Bytes of buffering: a send never waits for its receiver, as in the paper."""


class _Left(NamedTuple):
    """The notice of a node that lives but takes no further part."""

    turn: int  # the number of its last collective call
    why: str


class Post:
    """Sends and takes in the messages of one group. For one thread.

    No message is lost when Stop ends a call: it waits in ``_taken`` until its handling begins. If
    the handling itself is interrupted, the node is broken (``atomic``).

    Attributes:
        node, size: the number of this node, and the number of nodes.
        others: all nodes except this one.
        machines: the nodes of each machine.
        tree: this node's position in the tree of all nodes.
        handlers: kind -> the handler of messages of this kind, such as a barrier's.
        deliveries: kind -> the receiver of data, called with a number (the type) and ``Received``.
        atomic: guards steps that must not be left incomplete; otherwise the others are notified
            that this node has left.
        turn: gives the number of this node's latest collective call, which all nodes count alike.
    Args:
        session: the number of times that the group was started. Messages of earlier sessions are
            dropped.
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
        self._names = [member.name for member in members]
        self.node, self.size = self._names.index(sfm.name), len(members)
        self.others = [node for node in range(self.size) if node != self.node]
        self._firsts = list(firsts)
        self.machines = by_machine(firsts)
        self.tree: Tree = tree(self.machines, self.node)
        self._context = MembersOnly(sfm, f"speedes {group}", members)
        self._context.buffering = UNLIMITED
        self._context.tick = self._tick
        process = members[self.node]
        nodes = {member.uid: node for node, member in enumerate(members)}
        self._blocks = Blocks(
            sfm.folder, process, group, lambda member: self._takes_part(nodes[member.uid])
        )
        self._reader = Reader(sfm.folder, process, group)
        self._to_self: deque[tuple[str, int, Received]] = deque()
        self._taken: deque[Message] = deque()
        self._left: dict[int, _Left] = {}
        self._unreachable: set[int] = set()  # dead nodes to which a send has failed
        self.atomic = Atomic(f"node {self.node} of group {group}", self._leave)
        self.turn: Callable[[], int] = int
        self._checked, self._dead = 0.0, frozenset[int]()
        self._lost: int | None = None
        self.handlers: dict[str, Callable[[Message], None]] = {
            "lost": self._take_loss,
            "left": self._take_left,
        }
        self.deliveries: dict[str, Callable[[int, Received], None]] = {}

    # ---- sending ----

    def notify(self, node: int, kind: str, **attributes: Any) -> None:
        """Send a few values to a node's handler. Waits for a dead node notice its death."""
        with contextlib.suppress(PeerLost):
            self._write(node, kind=kind, node=self.node, **attributes)

    def send(self, dests: Iterable[int], kind: str, number: int, contents: Contents) -> None:
        """Send data to these nodes, which may include this one.

        Raises PeerLost if a node has died or left, after the message was sent to all others.
        """
        about = {"kind": kind, "number": number, "node": self.node}
        local: list[int] = []
        remote: dict[int, list[int]] = {}
        for node in dests:
            if node == self.node:
                self._to_self.append((kind, number, self._received(about, contents.copied())))
            elif self._firsts[node] == self._firsts[self.node]:
                local.append(node)
            else:
                remote.setdefault(self._firsts[node], []).append(node)
        lost = self._send_locally(local, about, contents)
        for nodes in remote.values():
            self._send_to_machine(nodes, about, contents, lost)
        if lost:
            lost_node = next(n for n, name in enumerate(self._names) if name == lost[0].peer)
            if lost_node not in self._left:  # a node that has left has notified all others
                self._report_loss(lost_node)  # others may wait for it
            raise lost[0]

    def _send_to_machine(
        self, nodes: list[int], about: dict[str, Any], contents: Contents, lost: list[PeerLost]
    ) -> None:
        """Send to the first living node of these, which passes the message on."""
        while nodes:
            first, *nodes = nodes
            try:
                self._send_one(first, about, contents, **({"to": nodes} if nodes else {}))
                return
            except PeerLost as error:
                lost.append(error)

    def _send_locally(
        self, nodes: Sequence[int], about: dict[str, Any], contents: Contents
    ) -> list[PeerLost]:
        """Send to nodes of this machine; returns the losses."""
        lost: list[PeerLost] = []
        headers = self._share(nodes, contents) if contents.nbytes >= SHARED_FROM else {}
        try:
            for node in nodes:
                try:
                    if node in headers:
                        self._send_header(node, headers.pop(node), about, contents)
                    else:
                        self._send_one(node, about, contents)
                except PeerLost as error:
                    lost.append(error)
        finally:
            for header in headers.values():  # after an interrupt: these headers were not sent
                self._blocks.withdraw(header)
        return lost

    def _share(self, nodes: Sequence[int], contents: Contents) -> dict[int, HeaderRef]:
        """Write the data once for all these nodes, if there are several; returns their headers."""
        if len(nodes) < 2:
            return {}
        headers = self._blocks.put(contents.bytes, [self._members[node] for node in nodes])
        return dict(zip(nodes, headers, strict=True)) if headers else {}

    def _send_header(
        self, node: int, header: HeaderRef, about: dict[str, Any], contents: Contents
    ) -> None:
        try:
            self._write(node, at=tuple(header), form=contents.form, **about)
        except SFMError:  # not after an interrupt: the node may have received the header
            self._blocks.withdraw(header)
            raise

    def _send_one(self, node: int, about: dict[str, Any], contents: Contents, **more: Any) -> None:
        self._write(node, payload=contents.payload, is_array=contents.is_array, **about, **more)

    def _write(self, to: int, /, **attributes: Any) -> None:
        """Send to a node. Raises PeerLost."""
        if to in self._left or to in self._unreachable:
            why = f": {self._left[to].why}" if to in self._left else ""
            raise PeerLost(self._names[to], f"and did not receive this message{why}")
        try:
            self._context.send(dest=self._names[to], session=self._session, **attributes)
        except (PeerLost, UnknownName) as error:  # the node was in the world at the start
            if not self._sfm.alive(self._members[to]):
                self._unreachable.add(to)
            if isinstance(error, PeerLost):
                raise
            raise PeerLost(self._names[to], "and did not receive this message") from None

    # ---- taking in ----

    def take_in(self) -> None:
        """Take in at most ``AT_ONCE`` messages that have arrived. Never waits."""
        self._blocks.free_unused()
        self._take(AT_ONCE)
        self._handle_taken()

    def wait(self, call: str) -> None:
        """Wait for one message for ``call``, and take it in.

        Blocks: until it arrives; Stop ends it.
        Raises:
            PeerLost: a neighbour in the tree has died, or has reported the loss of another node.
        """
        self._context.doing = call
        self._taken.extend(starmap(self._context.recv, repeat((), 1)))
        self._handle_taken()
        self._raise_if_lost(call)

    def while_in_a_collective(self) -> None:
        """Called about every 100 ms while this node waits in a collective call of the group.

        It takes in messages, since other nodes may need those that this node passes on before they
        can make the call. It makes no collective call.
        Raises: PeerLost if a node has left before this call.
        """
        self.take_in()
        now = self.turn()
        for node, left in self._left.items():
            if left.turn < now:
                raise PeerLost(self._names[node], f"while others waited for it: {left.why}")

    def _take(self, most: int) -> None:
        """Move messages that have arrived to ``_taken``.

        No Python code runs between the inbox and ``_taken``, so that no signal can interrupt it.
        """
        with contextlib.suppress(WouldBlock):
            self._taken.extend(starmap(self._context.recv_nb, repeat((), most)))

    def _handle_taken(self) -> None:
        if not (self._to_self or self._taken):
            return
        with self.atomic:
            while self._to_self:
                kind, number, received = self._to_self.popleft()
                self.deliveries[kind](number, received)
            while self._taken:
                self._handle(self._taken.popleft())

    def _tick(self) -> None:
        """Called every 100 ms while ``wait`` waits."""
        self.check_alive(self.neighbours, str(self._context.doing))

    @property
    def neighbours(self) -> list[int]:
        """The nodes next to this one in the tree."""
        parent = [] if self.tree.parent is None else [self.tree.parent]
        return [*parent, *self.tree.children]

    def check_alive(self, nodes: Iterable[int], call: str) -> None:
        """Check these nodes, at most every ``CHECK_INTERVAL`` seconds. Raises PeerLost, and reports
        the loss to the other nodes."""
        self._raise_if_lost(call)
        now = time.monotonic()
        if now < self._checked + CHECK_INTERVAL:
            return
        self._checked = now
        dead = frozenset(node for node in nodes if not self._takes_part(node))
        lost, self._dead = dead & self._dead, dead
        if lost:
            self._report_loss(min(lost))
            self._raise_if_lost(call)

    def _raise_if_lost(self, call: str) -> None:
        if self._lost is not None:
            why = f": {self._left[self._lost].why}" if self._lost in self._left else ""
            raise PeerLost(self._names[self._lost], f"while others waited for it in {call}{why}")

    def _takes_part(self, node: int) -> bool:
        """Whether a node lives and takes part."""
        return node not in self._left and self._sfm.alive(self._members[node])

    def _take_loss(self, message: Message) -> None:
        self._report_loss(message.lost)

    def _take_left(self, message: Message) -> None:
        self._left[message.node] = _Left(message.turn, message.why)

    def _report_loss(self, lost: int) -> None:
        if self._lost is None:
            self._lost = lost
            for node in self.neighbours:
                self.notify(node, "lost", lost=lost)

    def _handle(self, message: Message) -> None:
        if message.session != self._session:
            return  # the message is of an earlier session
        kind = message.kind
        if kind in self.handlers:
            self.handlers[kind](message)
            return
        about = {"kind": kind, "number": message.number, "node": message.node}
        data: Any
        if "at" in message:
            data = self._reader.take(HeaderRef(*message.at), partial(from_bytes, message.form))
        else:
            contents = Contents.received(message.payload, message.is_array)
            if "to" in message:
                self._send_locally(message.to, about, contents)  # losses do not matter
            data = contents.delivered()
        self.deliveries[kind](message.number, self._received(about, data))

    def _received(self, about: dict[str, Any], data: Any) -> Received:
        type_ = about["number"] if about["kind"] == "message" else None
        return Received(data, type_, about["node"])

    # ---- the end ----

    def close(self) -> None:
        """Leave: pass on messages for others, drop the rest, and notify all other nodes.

        Messages from this node are still received. The files of blocks are removed.
        """
        self._context.tick = None
        self._drain()
        if not self.atomic.broken:  # a broken node has notified the others already
            self._leave("it has left the group")
        self._blocks.close()
        self._reader.close()

    def _drain(self) -> None:
        """Empty the inbox. A broken node has notified the others, which have reused their memory:
        it must no longer be read."""
        self.deliveries = dict.fromkeys(self.deliveries, _drop)
        self._to_self.clear()
        with contextlib.suppress(SFMError, OSError):  # the endpoint may be closed
            self._take(AT_THE_END)
        while self._taken:
            message = self._taken.popleft()
            with contextlib.suppress(SFMError, OSError):
                if not self.atomic.broken:
                    self._handle(message)

    def _leave(self, why: str) -> None:
        """Notify all others that this node takes no further part."""
        for node in self.others:
            with contextlib.suppress(SFMError, OSError):
                if self._takes_part(node):
                    self.notify(node, "left", turn=self.turn(), why=why)


def _drop(number: int, received: Received) -> None:
    """Drop data that no call will receive."""
