"""Made-up histories for the timeline: programs that run in simulated time."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sfm_kernel.observe.timeline import Recorder
from sfm_kernel.observe.timeline.history import Reading
from tests.observe.pictures import check, where

BEGIN = 1_800_000_000.0
"""s since 1970 at which these histories begin."""


def uid(nth: int) -> str:
    return f"{nth + 1:032x}"


class Histories:
    """Records events as processes do; times in seconds since ``BEGIN``."""

    def __init__(self, processes: int, guests: int = 0) -> None:
        ranks = [*range(processes), *([None] * guests)]
        self.processes = [
            {"uid": uid(nth), "name": nth if rank is not None else "home", "rank": rank,
             "alive": True, "state": "running"}
            for nth, rank in enumerate(ranks)
        ]  # fmt: skip
        self.events: list[dict[str, Any]] = []
        self._nth: dict[int, int] = defaultdict(int)
        self._numbers: dict[tuple[int, int], int] = defaultdict(int)

    def event(self, process: int, time: float, kind: str, **more: Any) -> None:
        event = {"uid": uid(process), "nth": self._nth[process], "time": BEGIN + time, "what": kind,
                 "peer": "", "number": 0, "nbytes": 0, "where": None, "attributes": []}  # fmt: skip
        self.events.append(event | more)
        self._nth[process] += 1

    def skip(self, process: int, count: int) -> None:
        """Skip the numbers of ``count`` events, as if these were overwritten."""
        self._nth[process] += count

    def state(self, process: int, *states: tuple[float, str]) -> None:
        for time, state in states:
            self.event(process, time, state)

    def sent(self, src: int, dest: int, time: float, **more: Any) -> int:
        """Record the send of a message; return the message's number."""
        self._numbers[src, dest] += 1
        number = self._numbers[src, dest]
        about = {"nbytes": 100, "attributes": [("n", str(number))], "where": where(1)} | more
        self.event(src, time, "sent", peer=uid(dest), number=number, **about)
        return number

    def answered(self, src: int, dest: int, time: float) -> None:
        """An acknowledgement, which arrives at once."""
        self._numbers[src, dest] += 1
        for process, kind, peer in ((src, "answered", dest), (dest, "heard", src)):
            number = self._numbers[src, dest]
            self.event(process, time, kind, peer=uid(peer), number=number, where=where(4))

    def received(self, src: int, dest: int, time: float, number: int, **more: Any) -> None:
        about = {"nbytes": 100, "where": where(2)} | more
        self.event(dest, time, "received", peer=uid(src), number=number, **about)

    def reading(self, time: float = 1000.0, since: Mapping[str, int] | None = None) -> Reading:
        """All events up to ``time`` that come after those of ``since``."""
        since = since or {}
        events = [
            event
            for event in self.events
            if event["nth"] > since.get(event["uid"], -1) and event["time"] <= BEGIN + time
        ]
        return Reading(BEGIN + time, self.processes, events)


def read(histories: Histories, time: float = 1000.0) -> dict[str, Any]:
    """The timeline of a recorder after one reading; it is valid by the schema."""
    recorder = Recorder("/nowhere/w")
    recorder.take(histories.reading(time))
    data = recorder.whole()
    check("timeline", data)
    return data


def spans(data: dict[str, Any], nth: int) -> list[tuple[float, float | None, str]]:
    """The spans of one process; times from BEGIN on."""
    return [
        (round(row["begin"] - BEGIN, 3), row["end"] and round(row["end"] - BEGIN, 3), row["state"])
        for row in data["spans"]
        if row["uid"] == uid(nth)
    ]


Act = tuple[str, float] | tuple[str, int]
"""("compute", seconds), ("send", dest), ("ssend", dest: until it is received), ("recv", src)."""


def carried_out(
    programs: Sequence[Iterable[Act]], *, delays: Iterable[float] = (), capacity: int = 4
) -> Histories:
    """The histories that a run of the programs writes down, if they all come to their end.

    A message takes no time; an inbox takes ``capacity`` messages of each sender. ``delays`` are the
    times between a send and its record; in a delay, the receiver may be faster.
    """
    return _Machine(programs, delays, capacity).run()


class _Machine:
    TICK = 1e-4  # s, for what takes hardly any time

    def __init__(
        self, programs: Sequence[Iterable[Act]], delays: Iterable[float], capacity: int
    ) -> None:
        self.found = Histories(len(programs))
        self.programs = [deque(program) for program in programs]
        self.clocks = [0.0] * len(programs)
        self.blocked: dict[int, str] = {}
        self.queues: dict[tuple[int, int], deque[tuple[int, float]]] = defaultdict(deque)
        self.taken: dict[tuple[int, int], int] = defaultdict(int)
        self.waits: dict[int, tuple[int, int]] = {}  # for the receipt of (dest, number)
        self.changed = [0.0] * len(programs)  # when something last happened to a process
        self.delays, self.capacity = iter(delays), capacity

    def run(self) -> Histories:
        for nth in range(len(self.programs)):
            self.found.event(nth, 0.0, "running")
        while True:
            # The earliest process goes on first, so that none sees what has not happened yet.
            for nth in sorted(range(len(self.programs)), key=self.clocks.__getitem__):
                if self.step(nth):
                    break
            else:
                break
        assert not any(self.programs) and not self.waits, "made-up programs must not deadlock"
        for nth, clock in enumerate(self.clocks):
            self.found.event(nth, clock + self.TICK, "left")
        self.found.events.sort(key=lambda event: event["time"])
        return self.found

    def step(self, nth: int) -> bool:
        """Carry out the next act, or as much of it as can be; whether anything happened."""
        if nth in self.waits:
            dest, number = self.waits[nth]
            if self.taken[nth, dest] < number:
                return self.block(nth, "blocked in send")
            del self.waits[nth]
            self.resume(nth)
            return True
        if not self.programs[nth]:
            return False
        act, value = self.programs[nth][0]
        if act == "compute":
            self.clocks[nth] += float(value)
        elif act == "recv":
            if not self.queues[int(value), nth]:
                return self.block(nth, "blocked in recv")
            self.receive(int(value), nth)
        else:
            if len(self.queues[nth, int(value)]) >= self.capacity:
                return self.block(nth, "blocked in send")
            self.send(nth, int(value), wait=act == "ssend")
        self.programs[nth].popleft()
        return True

    def block(self, nth: int, state: str) -> bool:
        if nth in self.blocked:
            return False
        self.blocked[nth] = state
        self.clocks[nth] += self.TICK
        self.found.event(nth, self.clocks[nth], state, where=where(3))
        return True

    def resume(self, nth: int) -> None:
        self.clocks[nth] = max(self.clocks[nth], self.changed[nth]) + self.TICK
        if self.blocked.pop(nth, None):
            self.found.event(nth, self.clocks[nth], "running")

    def send(self, src: int, dest: int, *, wait: bool) -> None:
        self.clocks[src] = max(self.clocks[src], self.changed[src]) + self.TICK
        left = self.clocks[src]
        written = left + next(self.delays, 0.0)
        number = self.found.sent(src, dest, written)
        self.clocks[src] = written
        self.queues[src, dest].append((number, left))
        self.changed[dest] = max(self.changed[dest], left)
        self.resume(src)
        if wait:
            self.waits[src] = (dest, number)

    def receive(self, src: int, dest: int) -> None:
        number, left = self.queues[src, dest].popleft()
        self.clocks[dest] = max(self.clocks[dest], left) + self.TICK
        self.found.received(src, dest, self.clocks[dest], number)
        self.taken[src, dest] = number
        self.changed[src] = max(self.changed[src], self.clocks[dest])
        self.resume(dest)
