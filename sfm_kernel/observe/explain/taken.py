"""Messages that a stuck receive waits for, but that its process has received before.

Processes keep a trace of their latest events (native/src/trace.rs), and a message has the same
number at both ends. So the traces show for each message whether it would have fitted, and in which
line it was received, as long as both events are still in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfm_kernel._native import Observer
from sfm_kernel.observe.code_locations import code_location, words
from sfm_kernel.observe.explain.near import fits
from sfm_kernel.observe.snapshot import segments

Process = Mapping[str, Any]


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


def taken(process: Process, others: list[Process], traces: Traces) -> str:
    """Say which messages that would have fitted were received before, and where; "" if none.

    Also "" if one may still be on its way, or the line that received it is unknown.
    """
    wait = process["wait"]
    template = [condition for condition in wait["template"] if condition["name"] != "src"]
    if not template or any(condition["predicate"] for condition in wait["template"]):
        return ""
    senders = [one for one in others if wait["peers"] is None or _is_peer(one, wait)]
    if not all(sender["here"] for sender in [process, *senders]):
        return ""
    read, codes = traces.of(process["uid"])
    received = {(event[3], event[4]): event for event in read if event[2] == "received"}
    found, since = [], False
    for sender in senders:
        sent, _ = traces.of(sender["uid"])
        since = since or bool(sent and sent[0][0])  # earlier events were overwritten
        for number in _fitting(sent, process["uid"][16:], wait["context_id"], template):
            if (sender["uid"][16:], number) not in received:
                return ""
            found.append(received[sender["uid"][16:], number])
    if not found:
        return ""
    last = max(found, key=lambda event: event[0])
    location = words(code_location(codes.get(last[6]), last[7]))
    if not location:
        return ""
    if len(found) == 1:
        which = "latest" if since else "only"
        return f" The {which} message that would have fitted was received in {location}."
    how_many = f"the latest {len(found)}" if since else f"all {len(found)}"
    return (
        f" {process['name']} has received {how_many} messages that would have fitted, the last one "
        f"in {location}."
    )


def _is_peer(process: Process, wait: Mapping[str, Any]) -> bool:
    return process["name"] in wait["peers"] or process["rank"] in wait["peers"]


def _fitting(sent: list[Any], dest: str, context_id: str, template: list[Any]) -> Iterator[int]:
    """The numbers of the sent messages that would have fitted."""
    mark = max(1, int(context_id, 16) >> 48) if context_id else 0
    for event in sent:
        is_there = event[2] == "sent" and event[3] == dest and event[9] == mark
        if is_there and fits(template, {"attributes": event[8]}):
            yield event[4]
