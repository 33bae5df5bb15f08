"""The latest events of a world's processes, from the traces in their segments."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from sfm_kernel._native import Observer
from sfm_kernel.observe.code_locations import code_location
from sfm_kernel.observe.snapshot import segments

AHEAD_SECONDS = 3600.0
"""Events that are this much later than now are damage, even if the clock was set back."""


def events(
    folder: str, since: Mapping[str, int] | None = None, observer: Observer | None = None
) -> list[dict[str, Any]]:
    """The latest events of the world's processes, by time.

    Args:
        folder: as for ``snapshot``.
        since: for each process, by uid, the ``nth`` of the last event that was read before;
            events up to that one are left out.
        observer: as for ``snapshot``.
    Returns:
        For each event ``uid`` (the process), ``nth`` (its number in the process's history, from
        0), ``time`` (s since 1970), ``what`` ("sent", "received", or the state that began then;
        "answered" and "heard" at the two ends of an acknowledgement, which no program has sent;
        "variables" is an answer to an observer, see ``repetition``),
        ``peer`` (uid), ``number`` (of the message within this pair: the same at both ends),
        ``nbytes``, ``where`` (a "code_location" of ``schema.json``, or None), ``attributes`` (of
        messages that were sent: names and values as texts, the first ones). A process keeps its
        last 4096 events. From a damaged segment come only the events that make sense.
    """
    latest = time.time() + AHEAD_SECONDS
    observer = observer or Observer()
    paths = segments(folder)
    uids = {uid[16:]: uid for uid in paths}
    found = []
    for uid, path in paths.items():
        start = since[uid] + 1 if since and uid in since else 0
        read, _, codes = observer.trace(path, start)
        texts = dict(codes)
        for nth, when, kind, peer, number, nbytes, code, line, attributes, _ in read:
            if when > latest:
                continue
            event = {"uid": uid, "nth": nth, "time": when, "what": kind}
            event |= {"peer": uids.get(peer, peer), "number": number, "nbytes": nbytes}
            event |= {"where": code_location(texts.get(code), line), "attributes": attributes}
            found.append(event)
    return sorted(found, key=lambda event: (event["time"], event["nth"]))
