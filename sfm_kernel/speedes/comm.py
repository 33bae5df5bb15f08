"""SpeedesComm: the calls of one node.

Source: the paper of ``sfm_kernel.speedes``, section 2.
"""

from __future__ import annotations

import operator
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from sfm_kernel.collectives import Group
from sfm_kernel.errors import EndpointClosed, SFMError, UnknownName
from sfm_kernel.speedes.contents import Contents, Received
from sfm_kernel.speedes.coordinated import Coordinated
from sfm_kernel.speedes.fuzzy import FuzzyBarrier
from sfm_kernel.speedes.post import Post
from sfm_kernel.speedes.reductions import MAX, MIN, SUM, Reduction
from sfm_kernel.speedes.simtime import SimTime
from sfm_kernel.transport.closing import Closing

if TYPE_CHECKING:
    from sfm_kernel.directory import Member
    from sfm_kernel.endpoint import Endpoint

Value = TypeVar("Value", int, float, SimTime)

TYPES = 256
"""Message types are 0 to 255."""


class SpeedesComm(Closing):
    """One node of a group of nodes. ``start_up`` makes it. It is for one thread, and a context
    manager.

    Sends never wait. A node takes in messages in its own calls: in every receive, in
    ``exit_fuzzy_barrier`` and ``coordinated_receive``, and every 100 ms while it waits in a
    synchronisation call. In these calls it also passes messages on to other nodes of its machine; a
    node that computes passes nothing on.

    A call that ends in the middle of its work on messages (by Stop, or for lack of memory) may have
    lost some. Every later call of that node except ``get_num_nodes`` and ``get_node_id`` then
    raises SFMError, and calls of other nodes that wait for it raise PeerLost: start the group again
    on all nodes.

    Attributes:
        group_id: the id of the group.
        machines: the nodes of each machine, the lowest first.
    """

    def __init__(
        self,
        sfm: Endpoint,
        group: Group,
        group_id: int,
        session: int,
        members: Sequence[Member],
        firsts: Sequence[int],
    ) -> None:
        self.group_id, self._sfm, self._group = group_id, sfm, group
        self._post = Post(sfm, group_id, session, members, firsts)
        self._pending: dict[int, deque[Received]] = {}
        # Not a method: the post must not keep this object alive, whose end closes the post.
        self._post.deliveries["message"] = partial(_queue, self._pending)
        self._fuzzy = FuzzyBarrier(self._post)
        self._coordinated = Coordinated(self._post)
        self._post.turn = lambda: group.number
        group.on_wait = self._post.while_in_a_collective
        self._end = weakref.finalize(self, _leave, self._post, group)

    @property
    def machines(self) -> list[list[int]]:
        """The nodes of each machine, the lowest first (Table 1 of the paper)."""
        return self._post.machines

    # ---- state ----

    def get_num_nodes(self) -> int:
        """The number of nodes of the group, on all machines.

        Source: ``int SpComm_GetNumNodes()``, section 2.1.
        """
        return self._post.size

    def get_node_id(self) -> int:
        """The number of this node: 0 to ``get_num_nodes() - 1``.

        Source: ``int SpComm_GetNodeId()``, section 2.1.
        """
        return self._post.node

    # ---- synchronisation ----

    def barrier_sync(self) -> None:
        """Wait until every node has called it.

        Blocks: until then; meanwhile the node takes in messages. Stop (KeyboardInterrupt) ends it.
        Raises:
            PeerLost: a node has died, or has left before this call.
            CollectiveError: another node could not go on.
            SFMError: in the middle of a coordinated cycle; nothing is changed.
        Source: ``void SpComm_BarrierSync()``, section 2.2.
        """
        self._synchronises("barrier_sync")
        self._group.barrier()

    def global_min(self, value: Value) -> Value:
        """The least of the values of all nodes; every node returns it.

        The result is a float if some nodes give ints and some floats, and a SimTime if some give
        SimTimes.

        Blocks: until every node has called it.
        Args:
            value: an int, a float that is not NaN, or a SimTime.
        Raises:
            TypeError, ValueError: another value; only this node raises it.
            Other errors as ``barrier_sync``.
        Source: ``int SpComm_GlobalMin(int)``, ``double SpComm_GlobalMin(double)``, ``SpSimTime
            SpComm_GlobalMin(SpSimTime)``, section 2.2.
        """
        return cast(Value, self._reduce(MIN, value))

    def global_max(self, value: Value) -> Value:
        """The greatest of the values of all nodes; otherwise as ``global_min``.

        Source: ``int SpComm_GlobalMax(int)``, ``double SpComm_GlobalMax(double)``, ``SpSimTime
            SpComm_GlobalMax(SpSimTime)``, section 2.2.
        """
        return cast(Value, self._reduce(MAX, value))

    def global_sum(self, value: Value) -> Value:
        """The sum of the values of all nodes; otherwise as ``global_min``.

        For SimTimes, the times and each of the priorities are added. A float may be NaN, and the
        sum is then NaN; a SimTime cannot be NaN.
        Raises:
            ValueError: at every node, if some nodes gave SimTimes and the sum would be NaN: a node
                gave NaN, or one gave infinity and another its negative. The group goes on.
        Source: ``int SpComm_GlobalSum(int)``, ``double SpComm_GlobalSum(double)``, section 2.2; of
            SimTimes, ``SpComm_Net_Sum``, section 3.4.
        """
        return cast(Value, self._reduce(SUM, value))

    def enter_fuzzy_barrier(self) -> None:
        """Enter the fuzzy barrier, without waiting.

        Call ``exit_fuzzy_barrier`` repeatedly afterwards, with other work in between.
        Raises:
            SFMError: the node is in the barrier already, or in the middle of a coordinated cycle.
            PeerLost: a node has died.
        Source: ``void SpComm_EnterFuzzyBarrier()``, section 2.2.
        """
        self._synchronises("enter_fuzzy_barrier")
        self._fuzzy.enter()

    def exit_fuzzy_barrier(self) -> bool:
        """Whether all nodes have entered the fuzzy barrier. When it returns True, the barrier is
        over for this node.

        It never waits, and takes in the messages that have arrived.
        Raises:
            SFMError: this node has not entered, or is in the middle of a coordinated cycle.
            PeerLost: a node has died or left before it entered.
        Order, Cost: with up to 16 nodes, a node that enters sends a message to every other node, so
            that the result depends only on who has entered. With more nodes the messages travel
            along a tree, and wait at a node that makes no call.
        Source: ``int SpComm_ExitFuzzyBarrier()``, sections 2.2 and 3.1.
        """
        self._synchronises("exit_fuzzy_barrier")
        return self._fuzzy.exit()

    # ---- messages ----

    def send(self, dest: int, type: int, data: Any) -> None:
        """Send data to one node, which may be this one.

        It never waits for the receiver. The data may be changed afterwards.
        Args:
            dest: the receiver, 0 to ``get_num_nodes() - 1``.
            type: the message's type, 0 to 255.
            data: bytes, received as a ``bytearray``; or a NumPy array, received as an array of the
                same dtype, byte order and shape.
        Raises:
            UnknownName, TypeError, ValueError: an argument is wrong; nothing was sent.
            PeerLost: the receiver has died or left.
        Order: messages from one node to another are taken in in the order in which they were sent,
            except multicasts that another node passes on.
        Source: ``void SpComm_Send(int dest, int type, int nbytes, void *buff)``, section 2.3.
        """
        self._send([self._known(dest)], type, data)

    def multicast(self, dests: Iterable[int], type: int, data: Any) -> None:
        """Send data to each node of a set: a ``Destination`` or another iterable of nodes.

        On this machine, data of 128 KiB or more are written once for all receivers. To each other
        machine the data are sent once: the lowest receiver on it passes them on in its next call
        that takes in messages. If it dies before that, the other receivers on its machine do not
        get the message, without an error. (If the message is coordinated, all nodes raise PeerLost,
        since the cycle cannot end.)
        Raises: as ``send``; PeerLost after the message was sent to all other receivers.
        Source: ``void SpComm_Send(SpDestination *dest, int type, int nbytes, void *buff)``,
            sections 2.3 and 3.2.
        """
        self._send(self._all_known(dests), type, data)

    def broadcast(self, type: int, data: Any) -> None:
        """Send data to all nodes including this one; otherwise as ``multicast``.

        Source: ``void SpComm_Send(int type, int nbytes, void *buff)``, section 2.3.
        """
        self._send(range(self._post.size), type, data)

    @overload
    def receive(self) -> None: ...
    @overload
    def receive(self, type: int) -> Received | None: ...
    def receive(self, type: int | None = None) -> Received | None:
        """Take in the messages that have arrived; with a type, return the first of that type.

        It never waits. Without a type, messages are put into the queues of
        ``get_pending_message``. With a type, the queue of that type is read first; only if it is
        empty, messages that have arrived are taken in.
        Returns:
            ``Received``, with ``data``, ``type``, ``src`` and ``nbytes``; None if there is no
            message of that type. The data belong to this process, and are writable.
        Cost: it takes in at most 10 000 messages, so that it ends while others still send.
        Source: ``void SpComm_Receive(void)`` and ``void *SpComm_Receive(int type, int &nbytes)``,
            section 2.3.
        """
        if type is not None and (pending := self.get_pending_message(type)) is not None:
            return pending
        self._open()
        self._post.take_in()
        return None if type is None else self.get_pending_message(type)

    def get_pending_message(self, type: int) -> Received | None:
        """The first message of a type among those that were taken in; None if there is none.

        It does not take in messages; otherwise as ``receive(type)``.
        Source: ``void *SpComm_GetPendingMessage(int type, int &nbytes)``, section 2.3.
        """
        self._post.atomic.check()
        queue = self._pending.get(_type(type))
        return queue.popleft() if queue else None

    # ---- coordinated messages ----

    def coordinated_send(self, dest: int, data: Any) -> None:
        """Send data to one node, in a cycle that ends when no message is in transit.

        The first coordinated call after the end of a cycle begins the next cycle. Within a cycle a
        synchronisation call is an error. All nodes must call ``coordinated_receive`` until it
        returns None, even nodes that have nothing to send. Otherwise as ``send``.
        Source: ``void SpComm_CoordinatedSend(int dest, int nbytes, void *buff)``, section 2.3.
        """
        self._coordinated_send([self._known(dest)], data)

    def coordinated_multicast(self, dests: Iterable[int], data: Any) -> None:
        """Send data to each node of a set, as ``coordinated_send`` and ``multicast``.

        Source: ``void SpComm_CoordinatedSend(SpDestination *dest, int nbytes, void *buff)``,
            section 2.3.
        """
        self._coordinated_send(self._all_known(dests), data)

    def coordinated_broadcast(self, data: Any) -> None:
        """Send data to all nodes including this one, as ``coordinated_send``.

        Source: ``void SpComm_CoordinatedSend(int nbytes, void *buff)``, section 2.3.
        """
        self._coordinated_send(range(self._post.size), data)

    def coordinated_receive(self) -> Received | None:
        """The next coordinated message of this cycle; None when no message is in transit.

        After a message, a node may send further coordinated messages in the same cycle. After None
        the cycle is over.

        Blocks: until a message arrives, or until every node waits in this call and all messages
            were received. Stop ends the wait, and the next call continues it.
        Raises:
            PeerLost: a node has died or left, so that the cycle cannot end.
        Cost: at the end two sums over all nodes, about 4 · log2(nodes) messages one after another.
        Source: ``void *SpComm_CoordinatedReceive(int &nbytes)``, section 2.3.
        """
        self._open()
        return self._coordinated.receive()

    # ---- end ----

    def close(self) -> None:
        """Leave the group. Messages from this node are still received; messages to it are dropped.

        The other nodes then treat this node as if it had died: a send to it, and a wait for it,
        raises PeerLost. It is called automatically when the object is collected, the process ends,
        or the group is started anew.
        """
        self._end()

    def __repr__(self) -> str:
        node, size = self._post.node, self._post.size
        state = "" if self._end.alive else ", closed"
        return f"<SpeedesComm node {node} of {size}, group {self.group_id}{state}>"

    # ---- checks, and calls that several methods share ----

    def _open(self) -> None:
        if not self._end.alive:
            raise EndpointClosed(
                f"node {self._post.node} has left group {self.group_id}, or it was started anew: "
                f"use what the last start_up has returned"
            )
        self._post.atomic.check()

    def _synchronises(self, call: str) -> None:
        self._open()
        if self._coordinated.is_open:
            raise SFMError(
                f"{call}() is an error in the middle of coordinated messages, since others may "
                f"still wait for this node's. Call coordinated_receive() until it returns None; "
                f"nothing has changed"
            )

    def _reduce(self, reduction: Reduction, value: Any) -> Any:
        self._synchronises(reduction.call)
        # Checked before and converted afterwards: the reduction cannot fail on one node alone.
        ranked = reduction.ranked(value)
        return reduction.result(self._group.allreduce(ranked, reduction))

    def _send(self, dests: Sequence[int], type: int, data: Any) -> None:
        self._open()
        self._post.send(dests, "message", _type(type), Contents(data))

    def _coordinated_send(self, dests: Sequence[int], data: Any) -> None:
        self._open()
        self._coordinated.send(dests, Contents(data))

    def _known(self, dest: Any) -> int:
        try:
            node = operator.index(dest)
        except TypeError:
            raise TypeError(
                f"a node is an integer, not {dest!r:.60}; to send to several, use multicast"
            ) from None
        if not 0 <= node < self._post.size:
            group = f"{self._sfm.world}, group {self.group_id}"
            raise UnknownName(node, range(self._post.size), group)
        return node

    def _all_known(self, dests: Any) -> list[int]:
        if not isinstance(dests, Iterable):
            raise TypeError(
                f"a multicast goes to a set of nodes, such as [1, 2], not {dests!r:.60}"
            )
        return sorted({self._known(node) for node in dests})


def _leave(post: Post, group: Group) -> None:
    group.on_wait = None
    post.close()


def _queue(pending: dict[int, deque[Received]], type: int, received: Received) -> None:
    pending.setdefault(type, deque()).append(received)


def _type(type: Any) -> int:
    """A message type. Raises TypeError, ValueError."""
    try:
        number = operator.index(type)
    except TypeError:
        raise TypeError(f"a message type is an integer, not {type!r:.60}") from None
    if not 0 <= number < TYPES:
        raise ValueError(f"message types are 0 to {TYPES - 1}, not {number}")
    return number
