"""The fuzzy barrier: one call enters it, another asks whether all nodes have entered.

Source: the paper of ``sfm_kernel.speedes``, sections 2.2 and 3.1.
"""

from __future__ import annotations

from sfm_kernel.errors import SFMError
from sfm_kernel.message import Message
from sfm_kernel.speedes.post import Post
from sfm_kernel.speedes.waves import Wave

DIRECT_NODES = 16
"""Number of nodes up to which a node that enters sends to all others: n² messages, whose results do
not depend on later calls of other nodes. With more nodes the paper's tree is used: 2n messages,
which pass a node only when it takes in messages."""


class FuzzyBarrier:
    """Fuzzy barriers of one node, one after the other. No call waits."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._number = 0
        self.entered = False
        self._entered: dict[int, set[int]] = {}  # barrier -> the other nodes that have entered
        self._wave = Wave(post, "fuzzy barrier") if post.size > DIRECT_NODES else None
        post.handlers["entered"] = self._take

    def enter(self) -> None:
        """Enter the next barrier."""
        if self.entered:
            raise SFMError(
                "this node is in the fuzzy barrier already: call exit_fuzzy_barrier() until it "
                "returns True, then enter the next one"
            )
        with self._post.atomic:
            self._number += 1
            self.entered = True
            if self._wave is not None:
                self._wave.enter(self._number, ())
            else:
                for node in self._post.others:
                    self._post.notify(node, "entered", number=self._number)

    def exit(self) -> bool:
        """Whether all nodes have entered. When it returns True, the barrier is over for this
        node."""
        if not self.entered:
            raise SFMError("this node is in no fuzzy barrier: call enter_fuzzy_barrier() first")
        self._post.take_in()
        missing: set[int] = set()
        if self._wave is None:
            missing = {*self._post.others} - self._entered.get(self._number, set())
        elif self._wave.result(self._number) is None:
            missing = {*self._post.neighbours}
        if missing:
            self._post.check_alive(missing, "exit_fuzzy_barrier()")
            return False
        self.entered = False  # first: no node waits for the rest of this method
        self._entered.pop(self._number, None)
        return True

    def _take(self, message: Message) -> None:
        self._entered.setdefault(message.number, set()).add(message.node)
