"""Sites far from each other, in a lab on this machine, and SFM's targets for them.

Makes the experiments of notebook 10 and shows their tables; the last table compares with targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from sfm_kernel.lessons import sites
from sfm_kernel.lessons.measure.rows import Row
from sfm_kernel.lessons.sites import add_arguments, notes, plan, summary

FLOWING = 2.0
"""The longest time, in seconds, until messages flow again after a path is back."""
LOST = 0.5
"""The longest time, in seconds, until who waits for a killed program gets PeerLost."""
REPLACED = 1.0
"""The longest time, in seconds, until another gateway has replaced a killed one."""


class Target(NamedTuple):
    """``measured(rows, way)`` is a number of an experiment; the target is at most ``limit``.

    With ``at_least``, the target is at least ``limit``.
    """

    what: str
    measure: str
    way: str
    limit: float
    unit: str
    measured: Callable[[Sequence[Row], str], float | None]
    at_least: bool = False


def _of(rows: Sequence[Row], way: str, quantity: str, column: str = "seconds") -> float | None:
    """The median of a column, over the rows of one route whose ``what`` contains a text."""
    found = [
        row[column] for row in rows
        if row["way"] == way and quantity in row["what"] and row.get(column) is not None
    ]  # fmt: skip
    return median(found) if found else None


def beside(other: str, quantity: str, column: str = "seconds") -> Callable[..., float | None]:
    """The ratio to the same number on another route."""

    def ratio(rows: Sequence[Row], way: str) -> float | None:
        value, base = _of(rows, way, quantity, column), _of(rows, other, quantity, column)
        return None if value is None or not base else value / base

    return ratio


def within(quantity: str, than: str, column: str = "seconds") -> Callable[..., float | None]:
    """The ratio to another number on the same route."""

    def ratio(rows: Sequence[Row], way: str) -> float | None:
        value, base = _of(rows, way, quantity, column), _of(rows, way, than, column)
        return None if value is None or not base else value / base

    return ratio


def of(quantity: str, column: str = "seconds") -> Callable[..., float | None]:
    """The number itself."""
    return lambda rows, way: _of(rows, way, quantity, column)


def _more(rows: Sequence[Row], way: str) -> float | None:
    value, base = (_of(rows, name, "1 kB there") for name in (way, "direct bbr"))
    return None if value is None or base is None else (value - base) * 1e6


def _wrong(rows: Sequence[Row], way: str) -> float | None:
    """The number of messages that were lost, doubled or out of order, and of errors.

    An answer that was never heard is lost, too: ``beat`` also receives late answers, and asks on
    for seconds after the path is back. A lost question has no answer: it counts once.
    """
    some = [row for row in rows if row["way"] == way]
    if not some:
        return None
    return float(
        sum(max(row.get("lost", 0), row.get("unheard", 0)) for row in some)
        + sum(row.get("doubled", 0) + row.get("late", 0) for row in some)
        + sum(row["ended"] != "went on" for row in some)
    )


GATEWAYS = ("gateway", "gateway cubic")
BROKEN = ("cut 3", "cut 10", "cut 20", "reset")


def targets() -> Iterator[Target]:
    """All targets."""
    for way in GATEWAYS:
        yield Target("8 pairs, each silent for 1.4 s, 160 kB: times direct", "pairs 8", way, 0.3,
                     "×", beside("direct", "8 pairs"))  # fmt: skip
    yield Target("first message", "start", "gateway", 1.5, "RTT", of("first message", "rtts"))
    for way in ("direct", "direct bbr"):
        yield Target("first message, sent at once", "start", way, 5.6, "RTT",
                     of("first message", "rtts"))  # fmt: skip
        yield Target("first message, once connected", "start", way, 0.6, "RTT",
                     of("once connected", "rtts"))  # fmt: skip
    yield Target("two gateways on a short way: added to a round trip", "short", "gateway", 100.0,
                 "µs", _more)  # fmt: skip
    yield Target("two gateways on a short way: rate, times direct bbr", "short", "gateway", 0.95,
                 "×", beside("direct bbr", "4 MB", "mbit_s"), at_least=True)  # fmt: skip
    yield Target("16 MB, warm: rate, times bare TCP", "beside tcp", "direct bbr", 0.95, "×",
                 within("a message, warm", "bare TCP, warm", "mbit_s"), at_least=True)  # fmt: skip
    for way in ("direct", "direct bbr", "gateway", "gateway cubic"):
        yield Target("RTT 100 ms: rate of 4 MB, times that of 1 MB", "sizes", way, 0.9, "×",
                     within("of 4.1", "of 1.0", "mbit_s"), at_least=True)  # fmt: skip
    for size, name in (("4 MB", "loss 4 MB"), ("1 kB, mostly", "loss small")):
        for way in ("gateway", "gateway cubic", "gateway cubic x4"):
            yield Target(f"loss 1e-3, {size}: times direct bbr", name, way, 1.0, "×",
                         beside("direct bbr", "median"))  # fmt: skip
    for name in BROKEN:
        for way in ("direct", "direct bbr", "gateway"):
            yield Target(f"{name}: lost, doubled, errors", name, way, 0, "", _wrong)
            yield Target(f"{name}: flowing again after", name, way, FLOWING, "s", of(""))
    for way in ("direct", "gateway"):
        yield Target("PeerLost after a kill", "died", way, LOST, "s", of("PeerLost"))
    for name in ("killed", "killed of two"):
        yield Target(f"gateway {name}: lost, doubled, errors", name, "gateway", 0, "", _wrong)
        yield Target(f"gateway {name}: replaced after", name, "gateway", REPLACED, "s", of(""))
    for way in ("direct", "direct bbr", "gateway"):
        yield Target("barrier, 4 + 4 ranks: interleaved, times contiguous", "barrier", way, 1.2,
                     "×", within("interleaved", "contiguous"))  # fmt: skip
    for name in ("requests", "requests 3"):
        for way in GATEWAYS:
            yield Target(f"{name}, p90: round robin, times first in first out", name, way,
                         0.2, "×", within("round-robin, p90", "fifo, p90"))  # fmt: skip


def verdicts(measured: Sequence[Row]) -> list[Row]:
    """A row for each target whose experiment was made: the target, the measurement, a verdict.

    Disturbed runs do not count: if there are no others, the verdict is "disturbed". But a late lab
    does not excuse lost messages.
    """
    listed = []
    for target in targets():
        rows = [row for row in measured if row["measure"] == target.measure]
        if any(row["way"] == target.way for row in rows):
            found = target.measured(rows, target.way)
            sound = target.measured([row for row in rows if not row["disturbed"]], target.way)
            if found and target.limit == 0:
                sound = found
            disturbed = found is not None and sound is None
            sign = "≥" if target.at_least else "≤"
            listed.append({
                "what": target.what,
                "way": target.way,
                "target": f"{sign} {target.limit:g} {target.unit}".strip(),
                "measured": found if disturbed else sound,
                "verdict": "disturbed" if disturbed else _verdict(target, sound),
                **({"played": "yes"} if any(row.get("played") for row in rows) else {}),
            })  # fmt: skip
    return listed


def _verdict(target: Target, found: float | None) -> str:
    if found is None:
        return "not measured"
    if found >= target.limit if target.at_least else found <= target.limit:
        return "met"
    if not target.limit:
        return "missed"
    return f"missed by {abs(found / target.limit - 1):.0%}"


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: those of the experiments, then targets beside measurements."""
    listed = verdicts(measured)
    return sites.tables(measured) | ({"Targets": listed} if listed else {})


__all__ = ["add_arguments", "notes", "plan", "summary", "tables", "targets", "verdicts"]
