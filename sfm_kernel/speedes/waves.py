"""Sums over all nodes for which no call waits: reductions along a tree of messages.

A node sends its values up the tree when it and all nodes below it have entered, and the sum comes
down again. A node takes part whenever it takes in messages; a node that computes delays all nodes
beyond it in the tree until its next call.

Source: the paper of ``sfm_kernel.speedes``, section 3.1 (Figure 1; "the same structure but never
blocking").
"""

from __future__ import annotations

from sfm_kernel.message import Message
from sfm_kernel.speedes.post import Post

Sums = tuple[int, ...]


class Wave:
    """A sequence of sums, numbered 1, 2, 3 …, which all nodes enter in this order."""

    def __init__(self, post: Post, name: str) -> None:
        self._post, self._tree = post, post.tree
        self._up, self._down = f"{name} up", f"{name} down"
        self._below: dict[int, list[Sums]] = {}  # the children's values, some of later waves
        self._own: dict[int, Sums] = {}
        self._sums: dict[int, Sums] = {}
        post.handlers[self._up] = self._from_child
        post.handlers[self._down] = self._from_parent

    def enter(self, number: int, values: Sums) -> None:
        """Enter wave ``number`` with these values. Never waits."""
        self._sums.pop(number - 1, None)
        self._own[number] = values
        self._advance(number)

    def result(self, number: int) -> Sums | None:
        """The sums, until the next wave is entered; None while they are unknown."""
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
            self._post.notify(self._tree.parent, self._up, number=number, values=sums)

    def _finish(self, number: int, sums: Sums) -> None:
        self._sums[number] = sums
        for child in self._tree.children:
            self._post.notify(child, self._down, number=number, values=sums)
