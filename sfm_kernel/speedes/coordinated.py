"""Coordinated messages: a receiver knows when no message is in transit to it.

A cycle ends when every node waits in ``receive`` and all messages have been received. Nodes may
also send between two receives, after a message. The end is detected by counting: when a node has no
message to return, it takes part in a sum over all nodes of the messages that each has sent and
received in this cycle. Messages may overtake the sum, so one sum is not enough. But if the number
received in the first of two sums equals the number sent in the second, which began after the first
had ended, then no message was in transit in between, and no node could send another.

Sources: the paper of ``sfm_kernel.speedes``, section 2.3. Mattern, "Algorithms for Distributed
Termination Detection" (1987): the four counters. Steinman et al., "Global Virtual Time and
Distributed Synchronization" (1995): SPEEDES counts like this.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sfm_kernel.speedes.contents import Contents, Received
from sfm_kernel.speedes.post import Post
from sfm_kernel.speedes.waves import Wave


class Coordinated:
    """The coordinated messages of one node, cycle by cycle.

    Attributes:
        is_open: whether this node has sent or received in a cycle that has not ended for it.
    """

    def __init__(self, post: Post) -> None:
        self._post = post
        self._wave = Wave(post, "coordinated")
        self._waves = 0
        self._in_wave = False
        self._cycle = 1
        self._sent = self._received = 0
        self._received_before: int | None = None
        """Messages received by all nodes, according to the last sum of this cycle."""
        self._arrived: dict[int, deque[Received]] = {}  # cycle -> messages not yet returned
        self.is_open = False
        post.deliveries["coordinated"] = self._deliver

    def send(self, dests: Sequence[int], contents: Contents) -> None:
        """Send to these nodes in the current cycle; begin the cycle if it has not begun."""
        # Counted first: a message that is sent and not counted could end the cycle too early; one
        # that is counted and not sent (its receiver died) can only keep it from ending.
        with self._post.atomic:
            self.is_open = True
            self._sent += len(dests)
            self._post.send(dests, "coordinated", self._cycle, contents)

    def receive(self) -> Received | None:
        """The next message of this cycle; None when there is none, and the cycle is over.

        Blocks: until there is a message, or all nodes wait here and no message is in transit.
        """
        self.is_open = True
        while True:
            self._post.take_in()
            with self._post.atomic:
                if arrived := self._arrived.get(self._cycle):
                    self._received += 1
                    return arrived.popleft()
                if self._is_over():
                    return None
            if self._in_wave:
                self._post.wait("coordinated_receive()")

    def _is_over(self) -> bool:
        """Enter a sum, or check its result; returns whether it has ended the cycle."""
        if not self._in_wave:
            self._in_wave = True
            self._waves += 1
            self._wave.enter(self._waves, (self._sent, self._received))
        sums = self._wave.result(self._waves)
        if sums is None:
            return False
        self._in_wave = False
        sent, received = sums
        if sent == self._received_before:
            self._end()
            return True
        self._received_before = received
        return False

    def _end(self) -> None:
        """End the cycle. All nodes do so after the same sum: no message is then in transit."""
        self._arrived.pop(self._cycle, None)
        self._cycle += 1
        self._sent = self._received = 0
        self._received_before = None
        self.is_open = False

    def _deliver(self, cycle: int, received: Received) -> None:
        # A node that knows the end of a cycle may send in the next one before this node knows it.
        self._arrived.setdefault(cycle, deque()).append(received)
