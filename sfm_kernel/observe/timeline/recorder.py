"""The recorder: keeps up with a world, and gives its news in the shape of ``schema.json``."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel._native import Observer
from sfm_kernel.observe.events import events
from sfm_kernel.observe.snapshot import by_rank, folder_of, snapshot
from sfm_kernel.observe.timeline.history import History, Reading
from sfm_kernel.observe.timeline.late import Flight, Span, judge
from sfm_kernel.observe.timeline.view import Timeline


class Recorder:
    """The spans and messages of a world, read repeatedly, with the late senders and receivers.

    A process keeps its last 4096 events; call ``update`` often enough to read all of them.
    ``missing`` counts those that were overwritten meanwhile. Processes that have left or died stay
    in the history, as far as they were read, until the next run.

    The last run begins at the latest moment at which all ranked processes were idle (and no
    notebook waited for a cell) before something ran. In a world of plain processes, which never say
    that they are idle, it begins with the first event.

    Memory: at most 20 000 spans and 20 000 messages, some 30 MB; the oldest are dropped, and
    counted in ``missing``. Cost of an update: a snapshot, unless it is given one, and some
    10 us for each event. Not thread-safe.
    """

    def __init__(self, world: Any) -> None:
        """A recorder that has read nothing yet.

        ``world``: its folder on this machine, ``Endpoint.folder``, or an endpoint in it.
        """
        self._folder = folder_of(world)
        self._world = os.path.basename(self._folder.rstrip("/"))
        self._history = History()

    def update(
        self, seen: Mapping[str, Any] | None = None, observer: Observer | None = None
    ) -> dict[str, Any]:
        """Read the new events. The first call returns everything, later ones new and changed parts.

        Args:
            seen: a snapshot of the world that was taken just now, if there is one.
            observer: as for ``snapshot``.
        Returns:
            A "timeline" of ``schema.json``. A span with the uid and begin of an earlier one
            replaces it, as does a flight with the same id. Spans and flights that ended before
            ``begin`` (which grows with every run) no longer matter. In the rare case that the run
            turns out to have begun earlier, the result has everything.
        Raises:
            FileNotFoundError: there is no such folder.
        """
        self.read(seen, observer)
        return self.news()

    def news(self) -> dict[str, Any]:
        """The result of ``update`` for events that were read before; reads nothing."""
        return self._shown(*self._history.news())

    def read(self, seen: Mapping[str, Any] | None = None, observer: Observer | None = None) -> None:
        """Read the new events; ``news`` or ``update`` returns them later."""
        # First the processes: a process that is dead by then has written its last event.
        if seen is None:
            seen = snapshot(self._folder, observer=observer)
        new = events(self._folder, self._history.since(), observer)
        self.take(Reading(time.time(), seen["processes"], new))

    def take(self, reading: Reading) -> None:
        """Add a reading that another observer has made."""
        self._history.take(reading)

    def whole(self) -> dict[str, Any]:
        """The whole last run, in the shape of ``update``. Reads nothing."""
        return self._shown(self._history.spans(), self._history.flights())

    def timeline(self) -> Timeline:
        """The whole last run as a ``Timeline``. Reads nothing: call ``read`` before."""
        return Timeline(self.whole(), self.blind())

    def blind(self) -> dict[str, float]:
        """The times before which a receipt may have gone unseen, by uid, for incomplete processes.

        A process is incomplete if its events were overwritten, if it left before its last events
        were read, or if its events cannot be read on this machine.
        """
        history = self._history
        seen = {row.uid: math.inf if row.lost else row.gap for row in history.rows.values()}
        for flight in history.flights():
            seen.setdefault(history.full(flight.dest), math.inf)
        for row in history.rows.values():
            if row.nth < 0:
                seen[row.uid] = math.inf
        return {uid: time for uid, time in seen.items() if time > -math.inf}

    def _shown(self, spans: Iterable[Span], flights: Iterable[Flight]) -> dict[str, Any]:
        history = self._history
        return {
            "world": self._world,
            "begin": history.begin,
            "end": history.end,
            "missing": history.missing,
            "processes": self._processes(),
            "spans": [
                {name: getattr(span, name) for name in ("uid", "begin", "end", "state", "where")}
                for span in spans
            ],
            "flights": [self._flight(flight) for flight in flights],
        }

    def _processes(self) -> list[dict[str, Any]]:
        """The processes that take part in the run, by rank, those without a rank last."""
        history = self._history
        rows = []
        for uid in history.parties():
            row = history.rows.get(uid)
            name, rank = (row.name, row.rank) if row else (uid[:8], None)
            rows.append({"uid": uid, "name": name, "rank": rank})
        return sorted(rows, key=by_rank)

    def _flight(self, flight: Flight) -> dict[str, Any]:
        late, cost, since = judge(flight)
        return {
            "id": f"{flight.src}-{flight.dest}-{flight.number}",
            "src": self._history.full(flight.src),
            "dest": self._history.full(flight.dest),
            "number": flight.number,
            "sent": flight.departed,
            "received": flight.received,
            "bytes": flight.nbytes,
            "attributes": [list(pair) for pair in flight.attributes],
            "sent_at": flight.sent_at,
            "received_at": flight.received_at,
            "late": late,
            "cost": cost,
            "since": since,
        }
