"""Sets of receivers of a message.

Source: the paper of ``sfm_kernel.speedes``, section 2.3 (SpDestination).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator


class Destination:
    """The receivers of a multicast: a set of nodes, with the four methods of the paper.

    Iteration yields the nodes in ascending order; ``len`` and ``in`` work as for a set.
    ``Destination(range(1, 4))`` has nodes 1 to 3. Each node gets a message once, however often it
    was set.

    Source: section 2.3.
    Example:
        >>> dest = Destination([3, 1])
        >>> dest.set(0)
        >>> dest.reset(3)
        >>> dest.get_first_node(), dest.get_next_node(), dest.get_next_node()
        (0, 1, None)
    """

    def __init__(self, nodes: Iterable[int] = ()) -> None:
        self._nodes: set[int] = set()
        self._last = -1
        for node in nodes:
            self.set(node)

    def set(self, node: int) -> None:
        """Add a node (Set). Raises TypeError or ValueError if it is not a node's number."""
        self._nodes.add(_node_id(node))

    def reset(self, node: int) -> None:
        """Remove a node (Reset); harmless if it is not in the set."""
        self._nodes.discard(_node_id(node))

    def get_first_node(self) -> int | None:
        """The lowest node (GetFirstNode); None if the set is empty."""
        self._last = -1
        return self.get_next_node()

    def get_next_node(self) -> int | None:
        """The lowest node above the last result of this method or of ``get_first_node``
        (GetNextNode); None if there is none. Nodes may be set and reset in between.
        """
        following = min((node for node in self._nodes if node > self._last), default=None)
        if following is not None:
            self._last = following
        return following

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Destination) and self._nodes == other._nodes

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Destination({sorted(self._nodes)})"


def _node_id(node: int) -> int:
    try:
        number = operator.index(node)
    except TypeError:
        raise TypeError(f"a node is an integer, not {node!r}") from None
    if number < 0:
        raise ValueError(f"nodes are counted from 0: there is no node {number}")
    return number
