"""Which nodes share a machine, and the tree along which sums and barriers go.

A machine is where processes share memory. (With SFM_TRANSPORT=tcp none do: each is a machine then.)

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", sections 3.1 (the tree) and 3.3 (Table 1: nodes and boxes; sums go
between machines through local node 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


def by_machine(firsts: Sequence[int]) -> list[list[int]]:
    """The nodes of each machine, the lowest first; ``firsts[node]`` is the lowest on its machine.

    The first of each list is what the paper calls local node 0.
    """
    return [
        [node for node, first in enumerate(firsts) if first == one] for one in sorted(set(firsts))
    ]


class Tree(NamedTuple):
    """A node's place: whom it reports to, and who reports to it."""

    parent: int | None
    children: tuple[int, ...]


def tree(machines: Sequence[Sequence[int]], node: int) -> Tree:
    """The place of a node: binomial trees within the machines, and one of their local nodes 0.

    Its depth is about log2 of the nodes, and one message in each direction goes between two
    machines.
    """
    (own,) = [machine for machine in machines if node in machine]
    parent, children = _binomial(own, node)
    if parent is None:
        parent, others = _binomial([machine[0] for machine in machines], node)
        children += others
    return Tree(parent, children)


def _binomial(nodes: Sequence[int], node: int) -> tuple[int | None, tuple[int, ...]]:
    """Place k of the tree has the parent k without its lowest bit."""
    place = nodes.index(node)
    lowest = place & -place or 1 << len(nodes).bit_length()
    steps = [1 << bit for bit in range(lowest.bit_length() - 1)]
    children = tuple(nodes[place + step] for step in steps if place + step < len(nodes))
    return (nodes[place - lowest] if place else None), children
