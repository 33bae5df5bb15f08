"""The patterns of the NAS Parallel Benchmarks, played by sixteen programs at two sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.sites.counts import COUNTED
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.patterns import PATTERNS, RANKS, Step, computing, site
from sfm_kernel.lessons.sites.ways import DIRECT, Way
from sfm_kernel.lessons.sites.world import LabWorld

LAB: dict[str, Any] = {
    "rtt": 0.02,
    "rate": 500e6,
    "sites": {"A": RANKS // 2, "B": RANKS // 2},
}
CROSS = 200e6
"""Bits per second of other people's packets, where there are any."""

GATEWAYS_HURT = 1.05


def iterations(
    lab: Lab, way: Way = DIRECT, names: Sequence[str] = ("BT",), count: int | None = None
) -> Iterator[Row]:
    """Some iterations of each pattern, each rank in a host of its own; one before counts not.

    An iteration takes as long as it takes the slowest rank.
    """
    with LabWorld(lab, way) as world:
        sites = list(lab.sites)
        programs = [
            world.program(f"r{rank}", sites[site(rank)], rank % (RANKS // 2) + 1)
            for rank in range(RANKS)
        ]
        world.join(programs)
        for name in names:
            pattern = PATTERNS[name]
            steps = [_named(pattern.iteration(rank)) for rank in range(RANKS)]
            _play(programs, steps, 1)  # all have met
            before = world.counts(programs)
            seconds = _play(programs, steps, count or pattern.shown)
            after = world.counts(programs)
            yield {
                "what": f"{name}: an iteration",
                "pattern": name,
                "seconds": median(seconds),
                "longest": max(seconds),
                "computing_s": computing(pattern.iteration(0)),
                "iterations": len(seconds),
                "connections": after["connections"],
                **{one: after[one] - before[one] for one in COUNTED},
            }


def _named(steps: Iterable[Step]) -> list[Any]:
    """Steps with the programs' names for ranks, as JSON can tell them."""
    return [
        step
        if isinstance(step, float)
        else [[(f"r{to}", n) for to, n in step[0]], [f"r{source}" for source in step[1]]]
        for step in steps
    ]


def _play(programs: Sequence[Any], steps: list[list[Any]], count: int) -> list[float]:
    for one, its in zip(programs, steps, strict=True):
        one.begin("play", steps=its, iterations=count)
    told = [one.end()["seconds"] for one in programs]
    return [max(some) for some in zip(*told, strict=True)]


def table(measured: Sequence[Row]) -> list[Row]:
    """A row for each pattern: seconds of an iteration direct, and of each way times that."""
    listed = []
    for (measure, name), group in grouped(measured, ("measure", "pattern")).items():
        if name is None:
            continue
        seconds = {
            way: median(row["seconds"] for row in some)
            for (way,), some in grouped(group, ("way",)).items()
        }
        row: Row = {"pattern": measure.removeprefix("nas "), "expected": PATTERNS[name].expected}
        row["computing, s"] = group[0]["computing_s"]
        direct = seconds.pop("direct", None)
        row["direct, s"] = direct
        row |= {way: one / direct if direct else None for way, one in seconds.items()}
        through = seconds.get("gateway")
        if through and direct:
            row["gateway"] = through / direct
            row["a gateway"] = "hurts" if through > GATEWAYS_HURT * direct else (
                "helps" if direct > GATEWAYS_HURT * through else "does not matter")  # fmt: skip
        listed.append(row)
    return listed


def counts(measured: Sequence[Row]) -> list[Row]:
    """A row for each pattern and way: what was counted, of an iteration (Tables 4 and 6)."""
    return [
        {
            "pattern": row["measure"].removeprefix("nas "),
            "way": row["way"],
            "connections": row["connections"],
            **{one: row[one] / row["iterations"] for one in COUNTED},
        }
        for row in measured
        if row.get("pattern")
    ]
