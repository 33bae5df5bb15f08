"""Launchers watch the processes that they have started, and say once why these do not go on.

A launcher is no member of their world: it observes, and is not observed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from sfm_kernel.directory import root

if TYPE_CHECKING:
    from sfm_kernel.observe.watch import Lookout

LOOK_EVERY = 0.5
"""Seconds between two looks."""

PROOF = 2.0
"""Seconds for which a deadlock has to stand before it is told, or ended."""

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
        proof: float = PROOF,
        every: float = LOOK_EVERY,
    ) -> None:
        self._folder, self._pids = os.path.join(root(), world), pids
        self._tell, self._end, self._hint = tell, end, hint
        self._proof, self._every = proof, every
        self._lookout: Lookout | None = None
        self._times: dict[int, float] = {}
        self.due = time.monotonic() + every

    def look(self) -> None:
        """Look, if ``due``, which is in ``time.monotonic()``."""
        now = time.monotonic()
        if now < self.due:
            return
        passed, self.due = now - self.due + self._every, now + self._every
        if self._lookout is None:
            if self._somebody_rests(passed):
                self._lookout = self._begin()
            return
        try:
            self._lookout.look()
        except OSError:  # the world is not there: yet, or any more
            return

    def _begin(self) -> Lookout:
        from sfm_kernel.observe.watch import Lookout, Watch, end_calls

        folder = self._folder
        end = (lambda found: end_calls(folder, found)) if self._end else None
        return Lookout(Watch(folder, self._proof), self._show, end, quiet=True)

    def _show(self, text: str) -> None:
        self._tell("\n".join(filter(None, (text, self._hint))))

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

    ``code``, ``line``: as segments have them, see ``observe/places.py``.
    """
    from sfm_kernel.observe.places import in_line, place

    return in_line(place(code, line))


def crash(report: str) -> str:
    """What has killed a program in C, and in which line: from what it has reported at its end."""
    from sfm_kernel.observe.crashes import told

    return told(report)
