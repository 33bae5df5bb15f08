"""The recorder: keeps up with a world, and tells what is new in the shape of the schema."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from sfm_kernel._native import Observer
from sfm_kernel.observe.events import events
from sfm_kernel.observe.snapshot import folder_of, snapshot
from sfm_kernel.observe.timeline.history import History, Reading
from sfm_kernel.observe.timeline.late import Flight, Span, judge
from sfm_kernel.observe.timeline.view import Timeline


class Recorder:
    """The spans and messages of a world, read again and again, with those who were late.

    A process keeps its last 4096 events; who wants all of them calls ``update`` often enough, and
    sees in ``missing`` how many were overwritten meanwhile. Processes that have left or died stay,
    with what was read of them, until the next run.

    The last run begins at the latest moment at which all ranked processes were idle (and no
    notebook waited for a cell) before something ran. In a world of plain processes, which never say
    that they are idle, it begins with the first event.

    Memory: at most 20 000 spans and 20 000 messages, some 30 MB; the oldest are dropped, and
    counted in ``missing``. Cost of an update: a snapshot, unless it is given one, and some
    10 us for each event. Not for several threads at once.
    """

    def __init__(self, world: Any) -> None:
        """A recorder that has read nothing yet.

        ``world``: its folder on this machine, ``Endpoint.folder``, or an endpoint in it.
        """
        self._folder = folder_of(world)
        self._world = os.path.basename(self._folder.rstrip("/"))
        self._history = History()

    def update(
        self, picture: Mapping[str, Any] | None = None, observer: Observer | None = None
    ) -> dict[str, Any]:
        """Read on. The first call gives everything, later ones what is new or has changed.

        Args:
            picture: a snapshot of the world that was taken just now, if there is one.
            observer: as for ``snapshot``.
        Returns:
            The schema's ``timeline``. A span with the uid and begin of one that was told before
            takes its place, as does a flight with the same id. What ended before ``begin`` (which
            grows with every run) is of no more interest. Everything is told anew in the rare case
            that the run turns out to have begun earlier.
        Raises:
            FileNotFoundError: there is no such folder.
        """
        self.read(picture, observer)
        return self.news()

    def news(self) -> dict[str, Any]:
        """The result of ``update``, for all that was read already."""
        return self._shown(*self._history.news())

    def read(
        self, picture: Mapping[str, Any] | None = None, observer: Observer | None = None
    ) -> None:
        """Read on, and tell nothing: ``update`` will."""
        # First the processes: then whoever is dead has written its last event.
        if picture is None:
            picture = snapshot(self._folder, observer=observer)
        new = events(self._folder, self._history.since(), observer)
        self.take(Reading(time.time(), picture["processes"], new))

    def take(self, reading: Reading) -> None:
        """Take in what was read elsewhere."""
        self._history.take(reading)

    def whole(self) -> dict[str, Any]:
        """All that is known of the last run, in the shape of ``update``. Reads nothing."""
        return self._shown(self._history.spans(), self._history.flights())

    def timeline(self) -> Timeline:
        """All that is known of the last run, to be shown. Reads nothing: call ``read`` before."""
        return Timeline(self.whole(), self.blind())

    def blind(self) -> dict[str, float]:
        """Before which time a receipt of a process may have gone unseen, by uid; only such ones.

        Its events were overwritten, it left before it was read to its end, or it has no events that
        can be read here.
        """
        history = self._history
        seen = {row.uid: math.inf if row.gone else row.gap for row in history.rows.values()}
        for flight in history.flights():
            seen.setdefault(history.full(flight.dest), math.inf)
        for row in history.rows.values():
            if row.nth < 0:
                seen[row.uid] = math.inf
        return {uid: time for uid, time in seen.items() if time > -math.inf}

    def _shown(self, spans: Iterable[Span], flights: Iterable[Flight]) -> dict[str, Any]:
        history = self._history
        shown = [self._flight(flight) for flight in flights]
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
            "flights": shown,
        }

    def _processes(self) -> list[dict[str, Any]]:
        """All that have a part in the run, by rank, those without a rank last."""
        history = self._history
        rows = []
        for uid in history.parties():
            row = history.rows.get(uid)
            name, rank = (row.name, row.rank) if row else (uid[:8], None)
            rows.append({"uid": uid, "name": name, "rank": rank})
        return sorted(
            rows, key=lambda one: (one["rank"] is None, one["rank"] or 0, str(one["name"]))
        )

    def _flight(self, flight: Flight) -> dict[str, Any]:
        late, cost, since = judge(flight)
        return {
            "id": f"{flight.src}-{flight.dest}-{flight.number}",
            "src": self._history.full(flight.src),
            "dest": self._history.full(flight.dest),
            "number": flight.number,
            "sent": flight.left,
            "received": flight.received,
            "bytes": flight.nbytes,
            "attributes": [list(pair) for pair in flight.attributes],
            "sent_at": flight.sent_at,
            "received_at": flight.received_at,
            "late": late,
            "cost": cost,
            "since": since,
        }
