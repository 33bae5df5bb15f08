"""Launchers watch the processes that they have started, and report once why these do not go on.

A launcher is no member of their world: it observes, and is not observed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.directory import root
from sfm_kernel.transport.closing import Closing

if TYPE_CHECKING:
    from sfm_kernel.observe.deadlocks import DeadlockReporter
    from sfm_kernel.observe.timeline import Recorder, Timeline

CHECK_EVERY = 0.25
"""Seconds between two checks."""

PROOF = 2.0
"""Seconds that a deadlock must last before it is reported, or ended."""

LATEST = 1.0
"""Seconds after which it watches in any case: a process that polls never rests."""

_BUSY = 0.5
"""The share of a processor's time from which on a process counts as computing."""


class Watching(Closing):
    """Watches a launcher's world while it lives.

    Until one of the processes has rested for a moment, or a second is over, a check only reads
    how long they have computed: the observer is not even imported.

    Args:
        world: its name. It may not exist yet, or no longer exist.
        pids: the processes, in the order of their ranks.
        report: called with texts for the user.
        end: whether the calls of a deadlock are ended with DeadlockDetected; it is not reported
            then.
        hint: what the user can do about a deadlock, see ``with_hint``.
        record: the file into which ``record`` writes the run; empty for none.
        title: the title of that file.
        proof: seconds that a deadlock must last.
        every: seconds between two checks; less than half of ``proof``.
    Attributes:
        deadlocks: the deadlocks that were proven: when (s since 1970), and their explanations.
    """

    def __init__(
        self,
        world: str,
        pids: Callable[[], Iterable[int]],
        report: Callable[[str], object],
        *,
        end: bool = False,
        hint: str = "",
        record: str = "",
        title: str = "",
        proof: float = PROOF,
        every: float = CHECK_EVERY,
    ) -> None:
        self._folder, self._pids = os.path.join(root(), world), pids
        self._report, self._end, self._hint = report, end, hint
        self._proof, self._every = proof, every
        self._reporter: DeadlockReporter | None = None
        self._times: dict[int, float] = {}
        self._path, self._title = record, title
        self.deadlocks: list[tuple[float, str]] = []
        self._recorder: Recorder | None = None
        self.due = time.monotonic() + every
        self._latest = time.monotonic() + LATEST

    def check(self) -> None:
        """Check the processes if ``due`` (a time of ``time.monotonic()``) has come."""
        now = time.monotonic()
        if now < self.due:
            return
        passed, self.due = now - self.due + self._every, now + self._every
        if self._path:
            self._follow()
        if self._reporter is None:
            if not (self._somebody_rests(passed) or now >= self._latest):
                return
            self._reporter = self._begin()
        try:
            self._reporter.check()
        except OSError:  # the world does not exist yet, or no longer
            return

    def close(self) -> None:
        """Close the segments of the processes; their memory goes with the last that has it open."""
        self._reporter = self._recorder = None

    def why(self) -> str:
        """Why the processes do not go on now, in lines; "" if none has joined their world yet."""
        from sfm_kernel.observe.deadlocks import explanation
        from sfm_kernel.observe.explain import explain

        try:
            found = explain(self._folder)
        except OSError:
            return ""
        return explanation(found) if found["processes"] else ""

    def _begin(self) -> DeadlockReporter:
        from sfm_kernel.observe import deadlocks

        folder = self._folder

        def end(found: dict[str, Any]) -> list[Any]:
            self._note(deadlocks.explanation(found))
            if self._path:
                self._follow()  # the processes may leave now
            return deadlocks.end_calls(folder, found)

        judge = end if self._end else None
        monitor = deadlocks.DeadlockMonitor(folder, self._proof)
        return deadlocks.DeadlockReporter(monitor, self._show, judge, quiet=True)

    def _show(self, text: str) -> None:
        from sfm_kernel.observe.deadlocks import with_hint

        self._note(text)
        self._report(with_hint(text, self._hint))

    def record(self) -> None:
        """Write the file, if one was requested, while the processes are still alive."""
        if not self._path:
            return
        self._follow()
        if self._recorder is None:
            self._report(f"{self._path} was not written: nothing has happened")
            return
        try:
            run = self._recorder.timeline()
            notes = write_record(self._folder, self._path, self._title, self.deadlocks, run=run)
        except OSError as problem:
            notes = [f"{self._path} was not written: {problem.strerror}"]
        for note in notes:
            self._report(note)

    def _follow(self) -> None:
        """Read the new events: processes keep only their latest ones."""
        from sfm_kernel.observe.timeline import Recorder

        with contextlib.suppress(OSError):  # the world does not exist yet
            recorder = self._recorder or Recorder(self._folder)
            recorder.read()
            self._recorder = recorder

    def _note(self, text: str) -> None:
        self.deadlocks.append((time.time(), text))

    def _somebody_rests(self, passed: float) -> bool:
        before, self._times = self._times, {pid: processor_time(pid) or 0.0 for pid in self._pids()}
        known = before.keys() & self._times.keys()
        return any(self._times[pid] - before[pid] < passed * _BUSY for pid in known)


def write_record(
    folder: str,
    path: str,
    title: str,
    deadlocks: Sequence[tuple[float, str]],
    *,
    run: Timeline | None = None,
    output: str = "",
) -> list[str]:
    """Write the HTML file of a run, see ``observe.record.record``; returns sentences on what was
    left out of it.

    Args:
        folder: the folder of its segments.
        deadlocks: as in ``Watching.deadlocks``.
    """
    from sfm_kernel.observe.record import ProvenDeadlock, record

    proven = [ProvenDeadlock(*deadlock) for deadlock in deadlocks]
    return record(folder, path, title=title, deadlocks=proven, run=run, output=output)


def processor_time(pid: int) -> float | None:
    """Seconds of processor time of a process; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None


def call(report: str) -> tuple[str, str]:
    """The line of a C program's call, " in a.c, line 3", and the program's report about it."""
    from sfm_kernel.observe.crashes import call_text

    return call_text(report)


def line_of(code: str, line: int) -> str:
    """The location in a program, " in a.py, line 3"; empty if the line is unknown.

    ``code``, ``line``: as segments have them, see ``observe/code_locations.py``.
    """
    from sfm_kernel.observe.code_locations import code_location, in_line

    return in_line(code_location(code, line))


def stopped(report: str) -> str:
    """The line in which a C program was stopped, from the report that it wrote; "" if unknown."""
    from sfm_kernel.observe.crashes import crash_place

    return crash_place(report)


def with_lines(text: str) -> str:
    """A text in which the lines of C programs are in words."""
    from sfm_kernel.observe.crashes import with_lines

    return with_lines(text)


def crash(report: str) -> str:
    """The signal that killed a C program, and the line, from the report that it wrote."""
    from sfm_kernel.observe.crashes import crash_text

    return crash_text(report)
