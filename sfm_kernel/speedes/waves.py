"""A sum over all nodes that no call waits for: a reduction along a tree of messages.

Values go up the tree as soon as a node and all below it have entered, and the sum comes down again.
A node does its part whenever it takes messages in; so a node that computes holds up those whose
way to the others leads through it, until its next call.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 3.1 (Figure 1; "the same structure but never blocking").
"""

from __future__ import annotations

from sfm_kernel.message import Message
from sfm_kernel.speedes.post import Post

Sums = tuple[int, ...]


class Wave:
    """Sums that all nodes enter one after the other, each by its number: 1, 2, 3 …"""

    def __init__(self, post: Post, name: str) -> None:
        self._post, self._tree = post, post.tree
        self._up, self._down = f"{name} up", f"{name} down"
        self._below: dict[int, list[Sums]] = {}  # what came from children, some of it early
        self._own: dict[int, Sums] = {}
        self._sums: dict[int, Sums] = {}
        post.handlers[self._up] = self._from_child
        post.handlers[self._down] = self._from_parent

    def enter(self, number: int, values: Sums) -> None:
        """Take part in wave ``number`` with these values. Never waits."""
        self._sums.pop(number - 1, None)
        self._own[number] = values
        self._advance(number)

    def result(self, number: int) -> Sums | None:
        """The sums, until the next wave is entered; None as long as they are not known here."""
        return self._sums.get(number)

    def _from_child(self, message: Message) -> None:
        self._below.setdefault(message.number, []).append(message.values)
        self._advance(message.number)

    def _from_parent(self, message: Message) -> None:
        self._finish(message.number, message.values)

    def _advance(self, number: int) -> None:
        below = self._below.get(number, [])
        if number not in self._own or len(below) < len(self._tree.children):
            return
        sums = tuple(map(sum, zip(self._own.pop(number), *below, strict=True)))
        self._below.pop(number, None)
        if self._tree.parent is None:
            self._finish(number, sums)
        else:
            self._post.tell(self._tree.parent, self._up, number=number, values=sums)

    def _finish(self, number: int, sums: Sums) -> None:
        self._sums[number] = sums
        for child in self._tree.children:
            self._post.tell(child, self._down, number=number, values=sums)
