"""Minima, maxima and sums of ints, floats and SimTimes, also of several of these at once.

What a node gives is checked before it enters the reduction. What fails only when values meet is a
value itself, which every node gets and raises: nobody is left waiting.

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library", section 2.2.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from sfm_kernel.speedes.simtime import SimTime

KINDS: tuple[type, ...] = (int, float, SimTime)
"""What can be reduced: each can be made of those before it."""

SIMTIME, NO_SUM = 2, 3
"""Places in ``KINDS``, and one after them: SimTimes that have no sum."""

Ranked = tuple[int, Any]
"""Which of ``KINDS`` a value is, and the value."""


class Reduction:
    """An operation on such pairs, under its own name: nodes that call different ones are told.

    Attributes:
        call: the name of the SpeedesComm call.
    """

    def __init__(self, call: str, op: Callable[[Any, Any], Any]) -> None:
        self.call, self._op, self.__name__ = call, op, op.__name__

    def __call__(self, one: Ranked, other: Ranked) -> Ranked:
        rank = max(one[0], other[0])
        if rank == NO_SUM:
            return NO_SUM, None
        values = [_float(value) if kind == 0 < rank else value for kind, value in (one, other)]
        if rank == SIMTIME and self._op is operator.add and math.isnan(sum(map(float, values))):
            return NO_SUM, None
        return rank, self._op(*values)

    def given(self, value: Any) -> Ranked:
        """What a node gives to the reduction. Raises TypeError, ValueError."""
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
        """What the reduction's end means. Raises ValueError where there is no sum."""
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
    """The float nearest to a number; infinite beyond all floats."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
