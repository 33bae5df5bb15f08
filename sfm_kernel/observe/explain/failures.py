"""Sentences about engines whose cell has ended with an error: others may wait for them in vain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfm_kernel.observe.code_locations import in_line
from sfm_kernel.observe.explain.graph import Graph, Node


def text(process: Mapping[str, Any]) -> str:
    """What follows a failed engine's name: "ended cell 3 with NameError in line 4"."""
    error, where = process["failed"]["error"], process["failed"]["where"]
    if where is None or where["cell"] is None:
        return f"ended its cell with {error}{in_line(where)}"
    return f"ended cell {where['cell']} with {error} in line {where['line']}"


def by_text(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """The engines among these whose cell has failed, by what follows their names."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        if node.process["failed"]:
            found.setdefault(text(node.process), []).append(node)
    return found


def awaited(blocked: Sequence[Node], graph: Graph) -> list[Node]:
    """The failed engines that all these blocked processes wait for, directly or through others.

    Empty if one of them waits for something else.
    """
    failed = {uid for uid, node in graph.nodes.items() if node.process["failed"]}
    if not failed:
        return []
    reached = set(failed)
    waiting = [node for node in blocked if not graph.is_for_anybody(node)]
    while more := {node.uid for node in waiting if node.needs & reached} - reached:
        reached |= more
    if not all(node.uid in reached for node in blocked):
        return []
    needed = {uid for node in blocked for uid in node.needs}
    return [node for uid, node in graph.nodes.items() if uid in failed & needed]
