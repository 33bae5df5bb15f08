"""The nodes of each machine, and the tree of sums and barriers.

Processes on one machine share memory. (With SFM_TRANSPORT=zmq none do: each counts as a machine.)

Source: the paper of ``sfm_kernel.speedes``, sections 3.1 (the tree) and 3.3 (Table 1: nodes and
boxes; sums go between machines through local node 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


def by_machine(firsts: Sequence[int]) -> list[list[int]]:
    """The nodes of each machine, the lowest first. ``firsts[node]`` is the lowest node on the
    machine of ``node``: the paper's local node 0.
    """
    machines: dict[int, list[int]] = {first: [] for first in sorted(set(firsts))}
    for node, first in enumerate(firsts):
        machines[first].append(node)
    return list(machines.values())


class Tree(NamedTuple):
    """A node's position in the tree: its parent (None: it is the root) and its children."""

    parent: int | None
    children: tuple[int, ...]


def tree(machines: Sequence[Sequence[int]], node: int) -> Tree:
    """The position of a node in binomial trees within the machines and one of their local nodes 0.

    The depth is about log2 of the number of nodes. One message in each direction crosses between
    two machines.
    """
    (machine,) = [nodes for nodes in machines if node in nodes]
    parent, children = _binomial(machine, node)
    if parent is None:
        parent, others = _binomial([nodes[0] for nodes in machines], node)
        children += others
    return Tree(parent, children)


def _binomial(nodes: Sequence[int], node: int) -> tuple[int | None, tuple[int, ...]]:
    """Parent and children. The parent of position k is k without its lowest bit."""
    position = nodes.index(node)
    lowest = position & -position or 1 << len(nodes).bit_length()
    steps = [1 << bit for bit in range(lowest.bit_length() - 1)]
    children = tuple(nodes[position + step] for step in steps if position + step < len(nodes))
    return (nodes[position - lowest] if position else None), children
