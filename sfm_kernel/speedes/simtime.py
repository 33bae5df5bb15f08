"""Simulation time: a time, and four integers that break ties.

Source: the paper of ``sfm_kernel.speedes``, section 2.2 (SpSimTime).
"""

from __future__ import annotations

import math
import operator
from dataclasses import astuple, dataclass
from functools import total_ordering
from numbers import Real
from typing import Any


@total_ordering
@dataclass(frozen=True, eq=False, slots=True)
class SimTime:
    """The time of an event in a simulation. SimTimes are ordered by time, then by each priority.

    Events at the same time get different priorities, so that every run processes them in the same
    order. ``SimTime(2.5)`` has priorities 0; ``float(simtime)`` is the time alone; a number
    compares like the SimTime made of it. ``+`` adds the times and each of the priorities.

    Args:
        time: a number that a float can hold, except NaN, which cannot be ordered; in the unit of
            the simulation.
        priority1, priority2, priority3, priority4: integers.
    Raises:
        ValueError: the time, or the time of a sum, is NaN or too large for a float.
        TypeError: the time is not a number, or a priority is not an integer.
    Source: section 2.2.
    Example:
        >>> min(SimTime(2.0, 1), SimTime(2.0, 0, 7), SimTime(3.0))
        SimTime(2.0, 0, 7, 0, 0)
    """

    time: float = 0.0
    priority1: int = 0
    priority2: int = 0
    priority3: int = 0
    priority4: int = 0

    def __post_init__(self) -> None:
        given: Any = self.time
        if not isinstance(given, Real):
            raise TypeError(f"a SimTime's time is a number, not {given!r}")
        try:
            time = float(given)
        except OverflowError:
            raise ValueError(
                f"a SimTime's time is a float, and this {type(given).__name__} is larger than any: "
                f"use a coarser unit, or float('inf')"
            ) from None
        if math.isnan(time):
            raise ValueError("a SimTime cannot be NaN, which is neither before nor after any other")
        object.__setattr__(self, "time", time)
        for name in ("priority1", "priority2", "priority3", "priority4"):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, operator.index(value))
            except TypeError:
                raise TypeError(f"{name} is an integer, not {value!r}") from None

    @property
    def priorities(self) -> tuple[int, int, int, int]:
        """The four priorities, which break ties; the first is compared first."""
        return self.priority1, self.priority2, self.priority3, self.priority4

    def __float__(self) -> float:
        return self.time

    def __add__(self, other: object) -> Any:
        if (than := _as_tuple(other)) is None:
            return NotImplemented
        return SimTime(*map(operator.add, astuple(self), astuple(SimTime(*than))))

    __radd__ = __add__

    def __eq__(self, other: object) -> Any:
        than = _as_tuple(other)
        return NotImplemented if than is None else astuple(self) == than

    def __lt__(self, other: object) -> Any:
        than = _as_tuple(other)
        return NotImplemented if than is None else astuple(self) < than

    def __hash__(self) -> int:
        # A SimTime that equals a number has the number's hash.
        return hash(astuple(self) if any(self.priorities) else self.time)

    def __repr__(self) -> str:
        return f"SimTime{astuple(self)}" if any(self.priorities) else f"SimTime({self.time})"


def _as_tuple(value: object) -> tuple[Any, ...] | None:
    """The tuple by which a value is compared; None for NaN and for other types."""
    if isinstance(value, SimTime):
        return astuple(value)
    if isinstance(value, Real) and value == value:
        return value, 0, 0, 0, 0
    return None
