"""Where things are in a diagram: times on the x axis, processes in rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from sfm_kernel.observe.timeline import words


@dataclass(frozen=True)
class Frame:
    """The plot's area: ``left`` to ``right`` in px for ``begin`` to ``end`` in s."""

    begin: float
    end: float
    left: float
    right: float
    rows: dict[str, float]  # the middle of each process's row
    bar: float  # the height of a bar

    def x(self, time: float) -> float:
        """Also outside of the area."""
        share = (time - self.begin) / (self.end - self.begin)
        return self.left + share * (self.right - self.left)

    def within(self, time: float) -> float:
        """The same, at the border where it is outside."""
        return min(max(self.x(time), self.left), self.right)


def ticks(seconds: float, most: int = 8) -> list[tuple[float, str]]:
    """Round times from 0 to ``seconds``, as many as possible but not more, and how they are said.

    The unit is the same for all of them.
    """
    step = next(step for step in _steps() if seconds / step < most)
    times = [nth * step for nth in range(math.floor(seconds / step + 1e-9) + 1)]
    if step >= 60:
        return [(time, _minutes(time)) for time in times]
    fitting = (one for one in reversed(words.UNITS) if seconds >= one[0])
    unit, name = next(fitting, words.UNITS[0])
    return [(time, f"{time / unit:.6g} {name}") for time in times]


def _steps() -> Iterator[float]:
    for exponent in range(-9, 2):
        yield from (digit * 10.0**exponent for digit in (1, 2, 5) if digit * 10.0**exponent < 60)
    for minutes in (1, 2, 5, 10, 20, 30):
        yield 60.0 * minutes
    for power in count():
        yield 3600.0 * 2**power


def _minutes(time: float) -> str:
    hours, minutes = divmod(round(time / 60), 60)
    return f"{hours}:{minutes:02} h" if hours else f"{minutes} min"
