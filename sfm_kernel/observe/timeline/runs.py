"""The begin of the last run: the moment at which a process was at work again after none was.

A ranked process that says when it is idle (an engine) is at work while it is not idle; a notebook,
which has no rank, is at work while it waits for a cell that others run: engines do not start a cell
all at once, and a short cell may end on one engine before another one starts it. The union of all
times at work consists of stretches with pauses between them; the last stretch is the last run. A
process that has not been idle yet (because it is starting up, or is a plain Python process, which
never says so) decides nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable

KEPT = 1000
"""Stretches that are kept. More would serve only events that are read much too late."""


class Runs:
    """The union of intervals, which are added in any order."""

    def __init__(self) -> None:
        self._begins: list[float] = []
        self._ends: list[float] = []

    def add(self, begin: float, end: float) -> None:
        """Add an interval in which a process was at work."""
        low = bisect_left(self._ends, begin)  # the first stretch that it may touch
        high = low
        while high < len(self._begins) and self._begins[high] <= end:
            high += 1
        if low < high:
            begin, end = min(begin, self._begins[low]), max(end, self._ends[high - 1])
        self._begins[low:high], self._ends[low:high] = [begin], [end]
        if len(self._begins) > KEPT:
            del self._begins[0], self._ends[0]

    def last(self, still: Iterable[float] = ()) -> tuple[float, float]:
        """Begin and end of the last stretch; ``still``: the times since which others are at work.

        The end is infinite while a process is at work; both are nan if none has been.
        """
        begin = min(still, default=math.inf)
        stretches = zip(reversed(self._begins), reversed(self._ends), strict=True)
        if begin == math.inf:
            return next(stretches, (math.nan, math.nan))
        for other, end in stretches:
            if end < begin:
                break
            begin = min(begin, other)
        return begin, math.inf
