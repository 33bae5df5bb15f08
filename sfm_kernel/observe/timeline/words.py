"""Times, sizes and numbers as people write them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

UNITS = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


def duration(seconds: float) -> str:
    """A time with three digits and a unit: ``1.25 ms``; from two minutes on ``3 min 20 s``."""
    if seconds >= 119.5:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
    for unit, name in UNITS:
        if seconds < 999.5 * unit or name == "s":
            value = seconds / unit
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            text = f"{value:.{digits}f}"
            return f"{text.rstrip('0').rstrip('.') if digits else text} {name}"
    raise AssertionError("the last unit takes all")


def size(nbytes: int) -> str:
    """A size with three digits and a unit of powers of ten: ``1.25 MB``."""
    value, units = float(nbytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        del units[0]
    return f"{value:.3g} {units[0]}"


def count(number: int, thing: str) -> str:
    """A number with its noun: ``1 message``, ``2 messages``, ``2 processes``."""
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith('s') else 's'}".replace(",", " ")


def share(number: int, rest: int) -> str:
    """A number with its share: ``1 200, which are 30 %``; never 100 % while there is a rest."""
    percent = min(99.9, max(0.1, 100 * number / (number + rest))) if number else 0.0
    digits = 1 if 0 < percent < 0.95 or percent > 99 else 0
    return f"{f'{number:,}'.replace(',', ' ')}, which are {percent:.{digits}f} %"


def ticks(seconds: float, most: int = 8) -> list[tuple[float, str]]:
    """Round times from 0 to ``seconds`` with their texts, as many as possible up to ``most``.

    All texts have the same unit.
    """
    step = next(step for step in _steps() if seconds / step < most)
    times = [nth * step for nth in range(math.floor(seconds / step + 1e-9) + 1)]
    if step >= 60:
        return [(time, _minutes(time)) for time in times]
    fitting = ((unit, name) for unit, name in reversed(UNITS) if seconds >= unit)
    unit, name = next(fitting, UNITS[0])
    return [(time, f"{time / unit:.6g} {name}") for time in times]


def _steps() -> Iterator[float]:
    for exponent in range(-9, 2):
        yield from (digit * 10.0**exponent for digit in (1, 2, 5) if digit * 10.0**exponent < 60)
    for minutes in (1, 2, 5, 10, 20, 30):
        yield 60.0 * minutes
    for power in itertools.count():
        yield 3600.0 * 2**power


def _minutes(time: float) -> str:
    hours, minutes = divmod(round(time / 60), 60)
    return f"{hours}:{minutes:02} h" if hours else f"{minutes} min"
