"""Times, sizes and numbers as people write them."""

from __future__ import annotations

UNITS = ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s"))


def duration(seconds: float) -> str:
    """Three digits and a unit: ``1.25 ms``; above two minutes ``3 min 20 s``."""
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
    """Three digits and a unit of powers of ten."""
    value, units = float(nbytes), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        del units[0]
    return f"{value:.3g} {units[0]}"


def count(number: int, thing: str) -> str:
    """``1 message``, ``2 messages``; of processes as well."""
    if number == 1:
        return f"1 {thing}"
    return f"{number:,} {thing}{'es' if thing.endswith('s') else 's'}".replace(",", " ")


def share(part: int, rest: int) -> str:
    """``1 200, which are 30 %`` of all; never 100 % while there is a rest."""
    percent = min(99.9, max(0.1, 100 * part / (part + rest))) if part else 0.0
    digits = 1 if 0 < percent < 0.95 or percent > 99 else 0
    return f"{part:,}, which are {percent:.{digits}f} %".replace(",", " ", f"{part:,}".count(","))
