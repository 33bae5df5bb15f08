"""Launchers watch the processes that they have started, and say once why these do not go on.

A launcher is no member of their world: it observes, and is not observed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from sfm_kernel.directory import root

if TYPE_CHECKING:
    from sfm_kernel.observe.deadlocks import DeadlockReporter
    from sfm_kernel.observe.record import Told
    from sfm_kernel.observe.timeline import Recorder

LOOK_EVERY = 0.5
"""Seconds between two looks."""

PROOF = 2.0
"""Seconds for which a deadlock has to stand before it is told, or ended."""

_SENT = "<dynamic-code>"
"""The file of functions that are sent by value, as cloudpickle has it."""

_BUSY = 0.5
"""The share of a processor that a process takes which computes."""


class Watching:
    """Looks at a launcher's world while it lives.

    Until one of the processes has rested for a moment it costs nothing but a look at how long they
    have computed: the observer is not even imported.

    Args:
        world: its name. It need not exist yet, or any more.
        pids: the processes, in the order of their ranks.
        tell: called with what is to be shown.
        end: whether the calls of a deadlock are ended with DeadlockDetected; nothing is told then.
        hint: what the user could do about one, the last line of what is told.
        record: the file into which ``record`` writes what happened; empty for none.
        script: the file of the functions that are sent to the processes, where there is one.
        proof: seconds for which a deadlock has to stand.
        every: seconds between two looks; less than half of ``proof``.
    """

    def __init__(
        self,
        world: str,
        pids: Callable[[], Iterable[int]],
        tell: Callable[[str], object],
        *,
        end: bool = False,
        hint: str = "",
        record: str = "",
        script: str = "",
        proof: float = PROOF,
        every: float = LOOK_EVERY,
    ) -> None:
        self._folder, self._pids = os.path.join(root(), world), pids
        self._tell, self._end, self._hint = tell, end, hint
        self._proof, self._every = proof, every
        self._lookout: DeadlockReporter | None = None
        self._times: dict[int, float] = {}
        self._path, self._script = record, script
        self._told: list[Told] = []
        self._recorder: Recorder | None = None
        self.due = time.monotonic() + every

    def check(self) -> None:
        """Look, if ``due``, which is in ``time.monotonic()``."""
        now = time.monotonic()
        if now < self.due:
            return
        passed, self.due = now - self.due + self._every, now + self._every
        if self._path:
            self._follow()
        if self._lookout is None:
            if self._somebody_rests(passed):
                self._lookout = self._begin()
            return
        try:
            self._lookout.check()
        except OSError:  # the world is not there: yet, or any more
            return

    def _begin(self) -> DeadlockReporter:
        from sfm_kernel.observe.deadlocks import (
            DeadlockMonitor,
            DeadlockReporter,
            end_calls,
            explanation,
        )

        folder = self._folder

        def end(found: dict[str, Any]) -> list[Any]:
            self._note(explanation(found))
            if self._path:
                self._follow()  # they may leave now
            return end_calls(folder, found)

        judge = end if self._end else None
        return DeadlockReporter(DeadlockMonitor(folder, self._proof), self._show, judge, quiet=True)

    def _show(self, text: str) -> None:
        self._note(text)
        self._tell("\n".join(filter(None, (text, self._hint))))

    def record(self) -> None:
        """Write the file, if there is to be one, while the processes are there."""
        if not self._path:
            return
        from sfm_kernel.observe.record import record
        from sfm_kernel.observe.record.listing import lines_of_files

        def source(where: Mapping[str, Any]) -> str | None:
            is_sent = where["file"] == _SENT and self._script
            return lines_of_files({**where, "file": self._script} if is_sent else where)

        self._follow()
        if self._recorder is None:
            self._tell(f"{self._path} was not written: nothing has happened")
            return
        try:
            run = self._recorder.timeline()
            notes = record(self._folder, self._path, told=self._told, run=run, sources=source)
        except OSError as problem:
            notes = [f"{self._path} was not written: {problem.strerror}"]
        for note in notes:
            self._tell(note)

    def _follow(self) -> None:
        """Read on: processes keep their latest events only."""
        from sfm_kernel.observe.timeline import Recorder

        with contextlib.suppress(OSError):  # the world is not there yet
            recorder = self._recorder or Recorder(self._folder)
            recorder.read()
            self._recorder = recorder

    def _note(self, text: str) -> None:
        if self._path:
            from sfm_kernel.observe.record import Told

            self._told.append(Told(time.time(), text))

    def _somebody_rests(self, passed: float) -> bool:
        before, self._times = self._times, {pid: _computed(pid) for pid in self._pids()}
        known = before.keys() & self._times.keys()
        return any(self._times[pid] - before[pid] < passed * _BUSY for pid in known)


def _computed(pid: int) -> float:
    """Seconds of processor time of a process; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def call(report: str) -> tuple[str, str]:
    """Where a program in C has made a call, " in a.c, line 3", and what it has reported of that."""
    from sfm_kernel.observe.crashes import called

    return called(report)


def line_of(code: str, line: int) -> str:
    """Where in a program that is, " in a.py, line 3"; empty where no line is known.

    ``code``, ``line``: as segments have them, see ``observe/code_locations.py``.
    """
    from sfm_kernel.observe.code_locations import code_location, in_line

    return in_line(code_location(code, line))


def crash(report: str) -> str:
    """What has killed a program in C, and in which line: from what it has reported at its end."""
    from sfm_kernel.observe.crashes import told

    return told(report)
