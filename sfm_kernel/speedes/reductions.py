"""Minima, maxima and sums of ints, floats and SimTimes, and of mixtures of them.

A node's value is checked before it enters the reduction. A failure that shows only when values are
combined is a value itself: every node gets and raises it, and no node is left waiting.

Source: the paper of ``sfm_kernel.speedes``, section 2.2.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from sfm_kernel.speedes.simtime import SimTime

KINDS: tuple[type, ...] = (int, float, SimTime)
"""The types that can be reduced: a value of each can be converted to the later ones."""

SIMTIME, NO_SUM = 2, 3
"""The index of SimTime in ``KINDS``, and one after it: SimTimes that have no sum."""

Ranked = tuple[int, Any]
"""The index of a value's type in ``KINDS``, and the value."""


class Reduction:
    """An operation on such pairs. Its name differs from others', so that mismatches are noticed.

    Attributes:
        call: the name of the SpeedesComm call.
    """

    def __init__(self, call: str, op: Callable[[Any, Any], Any]) -> None:
        self.call, self._op, self.__name__ = call, op, op.__name__

    def __call__(self, left: Ranked, right: Ranked) -> Ranked:
        rank = max(left[0], right[0])
        if rank == NO_SUM:
            return NO_SUM, None
        values = [_float(value) if kind == 0 < rank else value for kind, value in (left, right)]
        if rank == SIMTIME and self._op is operator.add and math.isnan(sum(map(float, values))):
            return NO_SUM, None
        return rank, self._op(*values)

    def ranked(self, value: Any) -> Ranked:
        """A node's value as the reduction takes it. Raises TypeError, ValueError."""
        if isinstance(value, SimTime):
            return SIMTIME, value
        if isinstance(value, Integral):
            return 0, int(value)
        if not isinstance(value, Real):
            raise TypeError(f"{self.call} takes an int, a float or a SimTime, not {value!r:.60}")
        number = _float(value)
        if math.isnan(number) and self._op is not operator.add:
            raise ValueError(f"{self.call} cannot order NaN: check the value before")
        return 1, number

    def result(self, ranked: Ranked) -> Any:
        """The value of the reduction's result. Raises ValueError if there is no sum."""
        rank, value = ranked
        if rank == NO_SUM:
            raise ValueError(
                f"{self.call}: these SimTimes have no sum, since one node gave NaN, or one "
                f"infinity and another its negative: check the values before"
            )
        return value if isinstance(value, KINDS[rank]) else KINDS[rank](_float(value))


MIN = Reduction("global_min", min)
MAX = Reduction("global_max", max)
SUM = Reduction("global_sum", operator.add)


def _float(number: Any) -> float:
    """The float nearest to a number; infinity if the number is too large."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
