"""SpeedesComm: the calls of one node.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 2.
"""

from __future__ import annotations

import operator
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from sfm_kernel.collectives import Group
from sfm_kernel.errors import EndpointClosed, SFMError, UnknownName
from sfm_kernel.speedes.contents import Contents, Received
from sfm_kernel.speedes.coordinated import Coordinated
from sfm_kernel.speedes.fuzzy import FuzzyBarrier
from sfm_kernel.speedes.post import Post
from sfm_kernel.speedes.reductions import MAX, MIN, SUM, Reduction
from sfm_kernel.speedes.simtime import SimTime

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.transport.base import Member

Value = TypeVar("Value", int, float, SimTime)

TYPES = 256
"""Message types are 0 to 255."""


class SpeedesComm:
    """One node of a group of nodes. Made by ``start_up``; for one thread; a context manager.

    Sends never wait. What arrives is taken in by the node's own calls: by every receive, by
    ``exit_fuzzy_barrier`` and ``coordinated_receive``, and every 100 ms by a synchronisation call
    that waits. So is what it has to pass on to others of its machine; a node that computes passes
    nothing on.

    A call that is ended in the middle of its work on messages (by Stop, or for want of memory) may
    have lost some. Every later call of that node, but for the two of its state, is an SFMError
    then, and the others get PeerLost where they would wait for it: start the group again on all.

    Attributes:
        group_id: which group. machines: the nodes of each machine, the lowest first.
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
        # Not a method: the post must not keep this object alive, whose end is its own.
        self._post.deliveries["message"] = partial(_queue, self._pending)
        self._fuzzy = FuzzyBarrier(self._post)
        self._coordinated = Coordinated(self._post)
        self._post.turn = lambda: group.number
        group.on_wait = self._post.while_in_a_collective
        self._end = weakref.finalize(self, _leave, self._post, group)

    @property
    def machines(self) -> list[list[int]]:
        """The nodes of each machine, the lowest first. (The paper's Table 1.)"""
        return self._post.machines

    # ---- state ----

    def get_num_nodes(self) -> int:
        """How many nodes the group has, on all machines.

        Source: ``int SpComm_GetNumNodes()``, section 2.1.
        """
        return self._post.size

    def get_node_id(self) -> int:
        """Which node this is: 0 to ``get_num_nodes() - 1``.

        Source: ``int SpComm_GetNodeId()``, section 2.1.
        """
        return self._post.node

    # ---- synchronisation ----

    def barrier_sync(self) -> None:
        """Return when every node has called it.

        Blocks until then, and takes in meanwhile; Stop (KeyboardInterrupt) ends it.
        Raises: PeerLost if a node died, or left before it made this call; CollectiveError if
            another could not go on; SFMError in the middle of a coordinated cycle, and nothing is
            changed.
        Source: ``void SpComm_BarrierSync()``, section 2.2.
        """
        self._synchronises("barrier_sync")
        self._group.barrier()

    def global_min(self, value: Value) -> Value:
        """The least of the values that the nodes give; the same at every node.

        Blocks until every node has called it. Of an int and a float, the result is a float; of
        either and a SimTime, it is a SimTime.
        Args:
            value: an int, a float that is not NaN, or a SimTime.
        Raises: TypeError, ValueError for another value, and nobody else hears of it; otherwise as
            ``barrier_sync``.
        Source: ``int SpComm_GlobalMin(int)``, ``double SpComm_GlobalMin(double)``, ``SpSimTime
            SpComm_GlobalMin(SpSimTime)``, section 2.2.
        """
        return cast(Value, self._reduce(MIN, value))

    def global_max(self, value: Value) -> Value:
        """The greatest of the values that the nodes give; otherwise as ``global_min``.

        Source: ``int SpComm_GlobalMax(int)``, ``double SpComm_GlobalMax(double)``, ``SpSimTime
            SpComm_GlobalMax(SpSimTime)``, section 2.2.
        """
        return cast(Value, self._reduce(MAX, value))

    def global_sum(self, value: Value) -> Value:
        """The sum of the values that the nodes give; otherwise as ``global_min``.

        Of SimTimes, the times and each of the priorities are added. A float may be NaN here, and so
        is the sum then; but no SimTime is NaN.
        Raises: ValueError at every node, when some gave SimTimes and the sum would be NaN: one gave
            NaN, or one infinity and one its negative. The group goes on.
        Source: ``int SpComm_GlobalSum(int)``, ``double SpComm_GlobalSum(double)``, section 2.2; of
            SimTimes, ``SpComm_Net_Sum``, section 3.4.
        """
        return cast(Value, self._reduce(SUM, value))

    def enter_fuzzy_barrier(self) -> None:
        """Say that this node has come to the fuzzy barrier, and go on.

        Never waits. Then call ``exit_fuzzy_barrier`` now and then, with other work in between.
        Raises: SFMError if it is in the barrier already, or in the middle of a coordinated cycle;
            PeerLost.
        Source: ``void SpComm_EnterFuzzyBarrier()``, section 2.2.
        """
        self._synchronises("enter_fuzzy_barrier")
        self._fuzzy.enter()

    def exit_fuzzy_barrier(self) -> bool:
        """Whether all nodes have entered the fuzzy barrier. Once it is true, the barrier is over.

        Never waits. Takes in what has arrived.
        Raises: SFMError if this node has not entered, or in the middle of a coordinated cycle;
            PeerLost if a node died or left that had not entered.
        Order, Cost: with up to 16 nodes, who enters tells each of the others, so that the answer
            depends on nothing but that. With more, news goes along a tree of messages, and waits
            where a node calls nothing.
        Source: ``int SpComm_ExitFuzzyBarrier()``, sections 2.2 and 3.1.
        """
        self._synchronises("exit_fuzzy_barrier")
        return self._fuzzy.exit()

    # ---- messages ----

    def send(self, dest: int, type: int, data: Any) -> None:
        """Send data to one node, which may be this one.

        Never waits for the receiver. The data may be changed at once.
        Args:
            dest: 0 to ``get_num_nodes() - 1``.
            type: 0 to 255.
            data: bytes of any kind, received as a ``bytearray``; or a NumPy array, received as an
                array of the same dtype, byte order and shape.
        Raises: UnknownName, TypeError, ValueError, and nothing was sent; PeerLost.
        Order: two messages from one node to another are taken in as they were sent, but for a
            multicast that another node passes on.
        Source: ``void SpComm_Send(int dest, int type, int nbytes, void *buff)``, section 2.3.
        """
        self._send([self._known(dest)], type, data)

    def multicast(self, dests: Iterable[int], type: int, data: Any) -> None:
        """Send data to each node of a set: a ``Destination``, or anything else with nodes in it.

        On this machine 128 KiB and more are written once for all receivers. To each other machine
        the data go once: the lowest receiver there passes them on with its next call that takes in.
        If it dies before that, those after it on its machine do not get the message, and nobody is
        told so. (A coordinated one is missed: all get PeerLost, since its cycle cannot end.)
        Raises: as ``send``; PeerLost after all others were sent the message.
        Source: ``void SpComm_Send(SpDestination *dest, int type, int nbytes, void *buff)``,
            sections 2.3 and 3.2.
        """
        self._send(self._all_known(dests), type, data)

    def broadcast(self, type: int, data: Any) -> None:
        """Send data to all nodes, this one among them; otherwise as ``multicast``.

        Source: ``void SpComm_Send(int type, int nbytes, void *buff)``, section 2.3.
        """
        self._send(range(self._post.size), type, data)

    @overload
    def receive(self) -> None: ...
    @overload
    def receive(self, type: int) -> Received | None: ...
    def receive(self, type: int | None = None) -> Received | None:
        """Take in what has arrived; with a type, return the first message of that type.

        Never waits. Without a type, messages go to the queues that ``get_pending_message`` looks
        at. With one, the queue of that type is looked at first, and only if it is empty what has
        arrived is taken in; None where there is none of that type.
        Returns:
            ``Received``, with ``data``, ``type``, ``src`` and ``nbytes``. The data are this
            process's own, and writable.
        Cost: takes in 10 000 messages at most, so that it ends while others go on sending.
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

        Never looks at what has arrived since; otherwise as ``receive(type)``.
        Source: ``void *SpComm_GetPendingMessage(int type, int &nbytes)``, section 2.3.
        """
        self._post.whole.check()
        queue = self._pending.get(_type(type))
        return queue.popleft() if queue else None

    # ---- coordinated messages ----

    def coordinated_send(self, dest: int, data: Any) -> None:
        """Send data to one node, in a cycle that ends when nothing more is in transit.

        The first coordinated call after the end of a cycle begins the next one. Until this node has
        been told of its end, a synchronisation call is an error. All nodes have to call
        ``coordinated_receive`` until it returns None, also those that have nothing to send.
        Otherwise as ``send``.
        Source: ``void SpComm_CoordinatedSend(int dest, int nbytes, void *buff)``, section 2.3.
        """
        self._coordinated_send([self._known(dest)], data)

    def coordinated_multicast(self, dests: Iterable[int], data: Any) -> None:
        """Send data to each node of a set; as ``coordinated_send`` and ``multicast``.

        Source: ``void SpComm_CoordinatedSend(SpDestination *dest, int nbytes, void *buff)``,
            section 2.3.
        """
        self._coordinated_send(self._all_known(dests), data)

    def coordinated_broadcast(self, data: Any) -> None:
        """Send data to all nodes, this one among them; as ``coordinated_send``.

        Source: ``void SpComm_CoordinatedSend(int nbytes, void *buff)``, section 2.3.
        """
        self._coordinated_send(range(self._post.size), data)

    def coordinated_receive(self) -> Received | None:
        """The next coordinated message of this cycle; None once nothing more is in transit.

        Blocks while that is unknown: until a message comes, or until every node waits here and all
        that was sent was received. In answer to a message a node may send coordinated messages
        again, in the same cycle. After None the cycle is over; Stop ends a wait, and the next call
        goes on with it.
        Raises: PeerLost if a node died or left: the cycle cannot end then.
        Cost: at the end two sums over all nodes, about 4 · log2(nodes) messages one after another.
        Source: ``void *SpComm_CoordinatedReceive(int &nbytes)``, section 2.3.
        """
        self._open()
        return self._coordinated.receive()

    # ---- end ----

    def close(self) -> None:
        """Leave the group: what was sent is still received, what was not received is gone.

        The others are told, and treat this node as they would if it had died: what they send to it
        from then on, and what they wait for from it, is a PeerLost.
        Happens by itself when the object goes, the process ends, or the group is started anew.
        """
        self._end()

    def __enter__(self) -> SpeedesComm:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        node, size = self._post.node, self._post.size
        state = "" if self._end.alive else ", closed"
        return f"<SpeedesComm node {node} of {size}, group {self.group_id}{state}>"

    # ---- what they share ----

    def _open(self) -> None:
        if not self._end.alive:
            raise EndpointClosed(
                f"node {self._post.node} has left group {self.group_id}, or it was started anew: "
                f"use what the last start_up has returned"
            )
        self._post.whole.check()

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
        # Checked before and promoted afterwards: nothing can go wrong at one node alone.
        own = reduction.given(value)
        return reduction.result(self._group.allreduce(own, reduction))

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
            where = f"{self._sfm.world}, group {self.group_id}"
            raise UnknownName(node, range(self._post.size), where)
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
