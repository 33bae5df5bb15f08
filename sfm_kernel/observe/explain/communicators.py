"""Sentences about MPI's communicators: what has made them, and what their two groups must give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sfm_kernel.observe.explain.calls import MAKER, at, key_of, now
from sfm_kernel.observe.explain.graph import Node

_SHOWN = 4
"""Communicators whose makers are named."""

_INTER = "an intercommunicator"
"""The beginning of the title of one without a name: native/mpi/src/comm/shown.rs."""


def roots(blocked: Sequence[Node]) -> Iterator[str]:
    """The sentence on processes of two groups none of which gives MPI_ROOT."""
    groups: dict[object, list[Node]] = {}
    for node in blocked:
        groups.setdefault(key_of(node.process["wait"]), []).append(node)
    for members in groups.values():
        wait = members[0].process["wait"]
        is_inter = wait.get("group") and wait["group"][1].startswith(_INTER)
        texts = [call["text"] for node in members for call in now(node.process)]
        texts = [text for text in texts if re.search(r"root=\d", text)]
        if is_inter and len(texts) == len(wait.get("members", ())):
            mpi = "MPI_" if texts[0].startswith("MPI_") else "MPI."
            yield (
                f"No process gives root={mpi}ROOT: the root itself gives that, the others of its "
                f"group {mpi}PROC_NULL, and those of the other group the root's rank."
            )


def leaders(blocked: Sequence[Node]) -> Iterator[str]:
    """The sentence on leaders of two groups that do not name each other, or give two tags."""
    given = {node.name: _arguments(node.process["wait"]["purpose"]) for node in blocked}
    creating = {name: found for name, found in given.items() if "local_leader" in found}
    for node in blocked:
        for peer in node.process["wait"]["peers"] or ():
            own, theirs = creating.get(node.name, {}), creating.get(peer, {})
            if "remote_leader" not in own or not theirs or node.name == peer:
                continue
            if "remote_leader" not in theirs:
                leader = own["remote_leader"]
                yield f"{node.name} gives remote_leader={leader}, which leads no other group."
                return
            if own["tag"] != theirs["tag"]:
                yield (
                    f"The leaders must give the same tag, but {node.name} gives {own['tag']} and "
                    f"{peer} {theirs['tag']}."
                )
                return


def _arguments(purpose: str) -> dict[str, str]:
    return dict(re.findall(r"(local_leader|remote_leader|tag)=(\d+)", purpose))


def makers(blocked: Sequence[Node]) -> Iterator[str]:
    """Sentences on the calls that have made the communicators without names."""
    said: set[object] = set()
    for node in blocked:
        wait = node.process["wait"]
        made = [call for call in wait.get("made", ()) if call["number"] == MAKER]
        key, title = wait.get("group") or (wait.get("on"), "")
        title = title or wait["purpose"].rpartition("comm=")[2].rstrip(")")
        if made and title and key not in said and len(said) < _SHOWN:
            said.add(key)
            yield f"{title[0].upper()}{title[1:]} was made by {at(made[0])}."
