"""Messages that a receive waits for, but that its process has received before.

Processes keep a trace of their latest events (native/src/trace.rs), and a message has the same
number at both ends. So the traces show for each message whether it would have fitted, and in which
line it was received, as long as both events are still in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sfm_kernel._native import Observer
from sfm_kernel.observe.code_locations import code_location, words
from sfm_kernel.observe.explain.but_for import listed
from sfm_kernel.observe.explain.near import fits, regcb
from sfm_kernel.observe.snapshot import segments

Process = Mapping[str, Any]


Bystander = Mapping[str, Any]
"""See ``schema.json``, "other"."""

_SENDERS = 4
"""Senders that a sentence names; of more, it gives their number."""


class Traces:
    """The traces of a world's processes on this machine; each is read on request."""

    def __init__(self, folder: str) -> None:
        self._paths, self._observer = segments(folder), Observer()

    def of(self, uid: str) -> tuple[list[Any], dict[int, str]]:
        """The latest events of a process as ``Observer.trace`` gives them, and its codes."""
        if uid not in self._paths:
            return [], {}
        read, _, codes = self._observer.trace(self._paths[uid])
        return read, dict(codes)


class _Taken(NamedTuple):
    """A message that would have fitted: its sender, its attributes, and the event of its receipt,
    None if a later event has replaced that."""

    sender: Process
    attributes: list[Any]
    receipt: Any


def taken(
    process: Process,
    others: list[Process],
    traces: Traces,
    bystanders: Sequence[Bystander] = (),
    callback: str = "",
) -> str:
    """Say which messages that would have fitted were received before, and where; "" if none.

    Also "" if one may still be on its way. ``bystanders``: the process's threads and callbacks;
    ``callback``: the one that the process waits for, if it is in no receive.
    """
    wait = process["wait"]
    if wait["purpose"] and not wait["template"]:  # a library's internal messages
        return ""
    if any(condition["predicate"] for condition in wait["template"]):
        return ""
    template = [condition for condition in wait["template"] if condition["name"] != "src"]
    senders = [one for one in others if wait["peers"] is None or _is_peer(one, wait)]
    if not all(sender["here"] for sender in [process, *senders]):
        return ""
    read, codes = traces.of(process["uid"])
    received = {(event[3], event[4]): event for event in read if event[2] == "received"}
    found, since = [], False
    for sender in senders:
        sent, _ = traces.of(sender["uid"])
        since = since or _is_cut(sent)
        for event in _fitting(sent, process["uid"][16:], wait["context_id"], template):
            receipt = received.get((sender["uid"][16:], event[4]))
            if receipt is None and not _is_cut(read):
                return ""
            found.append(_Taken(sender, event[8], receipt))
    if not found:
        return ""
    last = max(found, key=lambda one: -1 if one.receipt is None else one.receipt[0])
    where = "" if last.receipt is None else _where(process, last, codes, bystanders)
    by_uid = {one.sender["uid"]: one.sender["name"] for one in found}
    of = f", from {listed(by_uid.values(), _SENDERS, 'others')}"
    if callback:
        messages = "message that fits" if len(found) == 1 else "messages that fit"
        how_many = f"the latest {len(found)}" if since else f"{len(found)} of {len(found)}"
        return f" Callback {callback} has received {how_many} {messages} it{of}."
    if len(found) == 1:
        which = "latest" if since else "only"
        return f" The {which} message that would have fitted was received before{where}{of}."
    how_many = f"the latest {len(found)}" if since else f"{len(found)} of {len(found)}"
    last_one = f", the last one{where.removeprefix(',')}" if where else ""
    text = f"{process['name']} has received {how_many} messages that would have fitted"
    return f" {text}{of}{last_one}."


def _is_peer(process: Process, wait: Mapping[str, Any]) -> bool:
    return process["name"] in wait["peers"] or process["rank"] in wait["peers"]


def _is_cut(read: list[Any]) -> bool:
    """Whether events have been replaced by later ones."""
    return bool(read and read[0][0])


def _fitting(sent: list[Any], dest: str, context_id: str, template: list[Any]) -> Iterator[Any]:
    """The events of sent messages that would have fitted."""
    mark = max(1, int(context_id, 16) >> 48) if context_id else 0
    for event in sent:
        is_there = event[2] == "sent" and event[3] == dest and event[9] == mark
        if is_there and fits(template, {"attributes": event[8]}):
            yield event


def _where(
    process: Process, message: _Taken, codes: Mapping[int, str], bystanders: Sequence[Bystander]
) -> str:
    """The line that received the message, or the callback that got it; "" if it is unknown."""
    if message.receipt[6]:
        location = words(code_location(codes.get(message.receipt[6]), message.receipt[7]))
        return f", in {location}" if location else ""
    if process["wait"]["purpose"]:  # MPI's: a thread has received it for a call of another
        return ""
    # No line of the program received it, so the network thread did, for a callback.
    about = {"attributes": [*message.attributes, ["src", repr(message.sender["name"])]]}
    callbacks = [regcb(template) for template in process["callbacks"] if fits(template, about)]
    if not callbacks:
        return ", by a callback"
    lines = [words(other["where"]) for other in bystanders if other["name"] == callbacks[0]]
    return f", by callback {callbacks[0]}{f' (in {lines[0]})' if lines and lines[0] else ''}"
