"""The fuzzy barrier: one call says that a node is there, another asks whether all are.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", sections 2.2 and 3.1.
"""

from __future__ import annotations

from sfm_kernel.errors import SFMError
from sfm_kernel.message import Message
from sfm_kernel.speedes.post import Post
from sfm_kernel.speedes.waves import Wave

EACH_TELLS_ALL = 16
"""Up to so many nodes, who enters tells every other one: n² messages in all, and nobody's answer
depends on what others do afterwards. With more nodes it is the paper's tree, 2n messages, in which
the news passes a node only when that node takes messages in."""


class FuzzyBarrier:
    """Fuzzy barriers of one node, one after the other. No call waits."""

    def __init__(self, post: Post) -> None:
        self._post = post
        self._number = 0
        self.entered = False
        self._there: dict[int, set[int]] = {}  # barrier -> who else has entered
        self._wave = Wave(post, "fuzzy barrier") if post.size > EACH_TELLS_ALL else None
        post.handlers["entered"] = self._hear

    def enter(self) -> None:
        """Say that this node has come to the next barrier."""
        if self.entered:
            raise SFMError(
                "this node is in the fuzzy barrier already: call exit_fuzzy_barrier() until it "
                "returns True, then enter the next one"
            )
        with self._post.whole:
            self._number += 1
            self.entered = True
            if self._wave is not None:
                self._wave.enter(self._number, ())
            else:
                for node in self._post.others:
                    self._post.tell(node, "entered", number=self._number)

    def exit(self) -> bool:
        """Whether all have come. Once it is, the barrier is over for this node."""
        if not self.entered:
            raise SFMError("this node is in no fuzzy barrier: call enter_fuzzy_barrier() first")
        self._post.take_in()
        missing: set[int] = set()
        if self._wave is None:
            missing = {*self._post.others} - self._there.get(self._number, set())
        elif self._wave.result(self._number) is None:
            missing = {*self._post.neighbours}
        if missing:
            self._post.look_after(missing, "exit_fuzzy_barrier()")
            return False
        self.entered = False  # first: without the rest of this nobody waits
        self._there.pop(self._number, None)
        return True

    def _hear(self, message: Message) -> None:
        self._there.setdefault(message.number, set()).add(message.node)
