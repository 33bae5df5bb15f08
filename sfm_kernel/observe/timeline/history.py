"""The history of a world, from its processes' events: spans of states, and messages in flight.

Events come in readings. Within a process they are taken in the order of its history; between
processes the order in which they are read does not matter: each end of a message depends on the
history of one process only, and ``late`` combines the two.

A process records a send event just after the message has left, so a fast receiver's receipt may
have the earlier time. No message is received before it is sent: the receipt's time then stands for
both.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

from sfm_kernel._native import MESSAGE_EVENTS
from sfm_kernel.observe.timeline.late import Flight, Span
from sfm_kernel.observe.timeline.runs import Runs

Event = Mapping[str, Any]
"""One event, as ``sfm_kernel.observe.events.events`` gives it."""

SPANS = FLIGHTS = 20_000
"""The most spans and flights that are kept: some 30 MB. The oldest are dropped."""

FEW = 1000
"""The most gaps of missing events that are counted separately."""

PATIENCE = 5.0
"""Seconds before the last run whose spans and flights are kept: another process's events, which are
read a little later, may show that the run began earlier."""

_MESSAGES = frozenset(MESSAGE_EVENTS)
"""The events of messages. Acknowledgements are not a program's messages, and are not shown: a
process that waits for one is blocked in a send, which ``late`` judges."""


@dataclass(frozen=True)
class Reading:
    """The processes of a snapshot taken at ``time``, and the new events that were read after it."""

    time: float
    processes: Iterable[Mapping[str, Any]]
    events: Iterable[Event]


@dataclass(eq=False)
class Row:
    """The history of one process, as far as it is known."""

    uid: str
    name: str | int = ""
    rank: int | None = None
    nth: int = -1  # the last event that was read
    first: float = math.inf  # its first event's time
    time: float = -math.inf  # its last event's time
    alive: float = -math.inf  # when it was last seen alive
    lost: bool = False  # its segment was removed before the last events were read
    gap: float = -math.inf  # the first event after those that were overwritten
    spans: deque[Span] = field(default_factory=deque)
    span: Span | None = None  # the span that lasts
    ended: Flight | None = None  # the last message that was sent or received in that span
    last_sent: Flight | None = None
    counts: bool = False  # whether it decides the begin of a run
    works: float | None = None  # since when it has not been idle
    cell: float | None = None  # since when it waits for a cell that others run


class History:
    """Spans and flights of a world, from readings. Not thread-safe."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.time = -math.inf  # of the last reading
        self.begin = self.end = -math.inf
        """The bounds of the last run. Its end is the last reading's time while it lasts."""
        self._runs = Runs()
        self._restful = False  # whether a process says when it is idle
        self._talked = -math.inf  # the time of the last send or receipt
        self._over = -math.inf  # spans and flights that ended before are dropped
        self._uids: dict[str, str] = {}  # by their last 16 digits, as events name a peer
        self._flights: dict[tuple[str, str, int], Flight] = {}
        self._talkers: dict[str, float] = {}  # the time of each process's last message
        self._missing: list[tuple[float, int]] = []
        self._new_spans: dict[int, Span] = {}
        self._new_flights: dict[int, Flight] = {}
        self._reported = math.inf  # the begin of the run in the last ``news``

    # ---- readings ----

    def since(self) -> dict[str, int]:
        """The number of the last event that was read of each process, by uid."""
        return {row.uid: row.nth for row in self.rows.values() if row.nth >= 0}

    def take(self, reading: Reading) -> None:
        """Add a reading. Events that were read before are skipped."""
        self.time = max(self.time, reading.time)
        present = {process["uid"]: process for process in reading.processes}
        for uid, process in present.items():
            row = self._row(uid)
            if process["state"] != "damaged":
                row.name, row.rank = process["name"], process["rank"]
        heard = set()
        for event in sorted(reading.events, key=itemgetter("uid", "nth")):
            row = self._row(event["uid"])
            if event["nth"] > row.nth:
                heard.add(row.uid)
                self._add(row, event)
        for row in self.rows.values():
            if row.uid in present and present[row.uid]["alive"]:
                row.alive = max(row.alive, reading.time)
            elif row.span is not None and (row.uid in present or row.uid not in heard):
                # It was killed, or has left: it lived as long as there is a sign of it. (A process
                # with new events that was not in the snapshot has joined meanwhile.)
                row.lost = row.uid not in present
                self._leave(row, max(row.time, row.alive))
        self.begin, self.end = self._bounds()
        self._forget(present)

    def _row(self, uid: str) -> Row:
        uid = self._uids.get(uid[-16:], uid)
        if uid not in self.rows:
            self.rows[uid] = Row(uid, name=uid[:8])
            self._uids[uid[-16:]] = uid
        return self.rows[uid]

    def _add(self, row: Row, event: Event) -> None:
        # Threads of a process, and a clock that is adjusted, may write times out of order.
        time = max(event["time"], row.time)
        if event["nth"] > row.nth + 1:
            self._gap(row, event["nth"] - row.nth - 1, time)
        row.nth, row.time, row.first = event["nth"], time, min(row.first, time)
        kind = event["what"]
        if kind == "variables":  # nothing that the process did
            return
        if kind not in _MESSAGES:
            self._state(row, kind, time, event["where"])
            return
        self._talked = max(self._talked, time)
        for uid in (row.uid[-16:], event["peer"][-16:]):
            self._talkers[uid] = max(time, self._talkers.get(uid, time))
        if row.span is None:  # after a gap: a process that sends or receives was running
            self._state(row, "running", time, None)
        if kind == "sent":
            self._sent(row, event, time)
        elif kind == "received":
            self._received(row, event, time)

    def _gap(self, row: Row, count: int, time: float) -> None:
        """Note that events were overwritten: nobody knows what the process did meanwhile."""
        self._missing.append((time, count))
        if row.nth < 0:
            row.counts = True  # it has run for long, so it is not starting up
        self._close(row, row.time)
        row.last_sent = None
        row.gap = time

    def _sent(self, row: Row, event: Event, time: float) -> None:
        flight = self._flight(row.uid, event["peer"], event["number"])
        flight.sent, flight.sent_at = time, event["where"]
        flight.nbytes = event["nbytes"]
        flight.attributes = [tuple(pair) for pair in event["attributes"]]
        if row.span is not None and row.span.state == "blocked in send":
            if row.last_sent is not None and row.last_sent.drain is row.span:
                row.last_sent.drain = None  # the wait was for room for this one
                self._changed(row.last_sent)
            if row.ended is not None:
                row.ended.room = None
                self._changed(row.ended)
            flight.room, row.ended = row.span, flight
        row.last_sent = flight
        self._changed(flight)

    def _received(self, row: Row, event: Event, time: float) -> None:
        flight = self._flight(event["peer"], row.uid, event["number"])
        flight.received, flight.received_at = time, event["where"]
        flight.nbytes = event["nbytes"]
        flight.wait = None
        if row.span is not None and row.span.state == "blocked in recv":
            if row.ended is not None and row.ended is not flight:
                row.ended.wait = None  # a callback took it; the wait went on
                self._changed(row.ended)
            flight.wait, row.ended = row.span, flight
        self._changed(flight)

    def _state(self, row: Row, state: str, time: float, where: Any) -> None:
        span = row.span
        if span is not None and span.state == state and where in (None, span.where):
            return
        self._close(row, time)
        if state == "left":
            row.lost = False
            self._leave(row, time)
            return
        is_reported = False
        if row.spans and row.spans[-1].begin == time:
            # A span is identified by its begin: this one replaces one without length.
            replaced = row.spans.pop()
            is_reported = replaced.is_reported
            self._new_spans.pop(id(replaced), None)
            if row.last_sent is not None and row.last_sent.drain is replaced:
                row.last_sent.drain = None
        row.span = span = Span(row.uid, time, None, state, where, is_reported)
        row.spans.append(span)
        self._new_spans[id(span)] = span
        sent = row.last_sent
        if state == "blocked in send" and sent is not None and sent.drain is None:
            sent.drain = span
            self._changed(sent)
        self._work(row, state, time)

    def _close(self, row: Row, time: float) -> None:
        if row.span is not None:
            row.span.end = time
            self._new_spans[id(row.span)] = row.span
            if row.last_sent is not None and row.last_sent.drain is row.span:
                self._changed(row.last_sent)
        row.span = row.ended = None

    def _flight(self, src: str, dest: str, number: int) -> Flight:
        key = (src[-16:], dest[-16:], number)
        if key not in self._flights:
            self._flights[key] = Flight(*key)
        return self._flights[key]

    def _changed(self, flight: Flight) -> None:
        self._new_flights[id(flight)] = flight

    # ---- runs ----

    def _work(self, row: Row, state: str, time: float) -> None:
        """Note the times at work, which decide where a run begins; see ``Runs``."""
        if state != "blocked in cell" and row.cell is not None:
            self._runs.add(row.cell, time)
            row.cell = None
        elif state == "blocked in cell" and row.cell is None:
            row.cell = time
            self._restful = True
        if row.rank is None:
            return
        if state == "idle":
            if row.works is not None:
                self._runs.add(row.works, time)
            row.works, row.counts, self._restful = None, True, True
        elif row.counts and row.works is None:
            row.works = time

    def _leave(self, row: Row, time: float) -> None:
        """The process has ended, and with it its span, its work and its wait for a cell."""
        self._close(row, time)
        for since in (row.works, row.cell):
            if since is not None:
                self._runs.add(since, time)
        row.works = row.cell = None

    def _bounds(self) -> tuple[float, float]:
        """Begin and end of the last run, or of the history if no process says when it is idle."""
        rows = self.rows.values()
        at_work = (since for row in rows for since in (row.works, row.cell) if since is not None)
        begin, end = self._runs.last(at_work) if self._restful else (math.nan, math.nan)
        if math.isnan(begin):
            begin = min((row.first for row in rows if row.nth >= 0), default=self.time)
            lasts = any(row.span and row.span.state != "idle" for row in rows)
            end = math.inf if lasts else max((row.time for row in rows), default=begin)
        # A notebook may receive the last process's message when that process is idle again.
        return begin, self.time if end == math.inf else max(end, self._talked)

    # ---- results ----

    def full(self, uid: str) -> str:
        """The complete uid for the last 16 digits, which events have."""
        return self._uids.get(uid[-16:], uid)

    @property
    def missing(self) -> int:
        """Events of the last run that were overwritten, or dropped."""
        return sum(count for time, count in self._missing if time >= self.begin)

    def spans(self) -> Iterator[Span]:
        """The spans of the last run, by process and time."""
        return (span for row in self.rows.values() for span in row.spans if self.in_run(span))

    def flights(self) -> Iterator[Flight]:
        """The flights of the last run; also messages sent before it and received in it."""
        return filter(self.in_run, self._flights.values())

    def parties(self) -> set[str]:
        """The uids of the processes that take part in the last run."""
        talkers = {self.full(uid) for uid, time in self._talkers.items() if time >= self.begin}
        rows = self.rows.values()
        return talkers | {row.uid for row in rows if row.spans and self.in_run(row.spans[-1])}

    def in_run(self, item: Span | Flight) -> bool:
        """Whether a span or flight belongs to the last run."""
        return item.last > self.begin if isinstance(item, Span) else item.last >= self.begin

    def news(self) -> tuple[list[Span], list[Flight]]:
        """The spans and flights of the run that are new, or have changed, since the last call.

        All of them if the run turns out to have begun earlier than the last call said.
        """
        if self.begin < self._reported:
            self._new_spans |= {id(span): span for span in self.spans()}
            self._new_flights |= {id(flight): flight for flight in self.flights()}
        self._reported = self.begin
        spans = [span for span in self._new_spans.values() if span.is_reported or self.in_run(span)]
        flights = [flight for flight in self._new_flights.values() if self.in_run(flight)]
        for span in spans:
            span.is_reported = True
        self._new_spans, self._new_flights = {}, {}
        return spans, flights

    # ---- forgetting ----

    def _forget(self, present: Container[str]) -> None:
        """Drop what ended before the last run, and the oldest if there is too much."""
        over = self.begin - PATIENCE
        if over != self._over:
            self._over = over
            self._drop_spans(over)
            for key, flight in list(self._flights.items()):
                if flight.received is not None and flight.last < over:  # others may still arrive
                    del self._flights[key]
                    self._new_flights.pop(id(flight), None)
            self._talkers = {uid: time for uid, time in self._talkers.items() if time >= over}
            self._missing = [(time, count) for time, count in self._missing if time >= over]
            for row in list(self.rows.values()):
                if not row.spans and row.uid not in present:
                    del self.rows[row.uid], self._uids[row.uid[-16:]]
        surplus = sum(len(row.spans) for row in self.rows.values()) - SPANS
        if surplus > 0:
            # A tenth more at once, so that this is rare.
            ends = sorted(span.last for row in self.rows.values() for span in row.spans)
            over = ends[surplus + SPANS // 10]
            self._missing.append((min(over, self.time), self._drop_spans(over)))
        surplus = len(self._flights) - FLIGHTS
        if surplus > 0:
            for key in list(islice(self._flights, surplus + FLIGHTS // 10)):
                flight = self._flights.pop(key)
                self._new_flights.pop(id(flight), None)
                known = sum(time is not None for time in (flight.sent, flight.received))
                self._missing.append((flight.last, known))
        if len(self._missing) > FEW:
            time = self._missing[-1][0]
            self._missing = [(time, sum(count for _, count in self._missing))]

    def _drop_spans(self, over: float) -> int:
        """Drop the spans that ended before ``over``; return their number."""
        count = 0
        for row in self.rows.values():
            while row.spans and row.spans[0].last < over:
                span = row.spans.popleft()
                if not span.is_reported:
                    self._new_spans.pop(id(span), None)
                count += 1
        return count
