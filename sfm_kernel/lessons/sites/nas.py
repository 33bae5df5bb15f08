"""The patterns of the NAS Parallel Benchmarks, run by sixteen programs at two sites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.sites.counts import COUNTED
from sfm_kernel.lessons.sites.lab import Lab
from sfm_kernel.lessons.sites.patterns import PATTERNS, RANKS, Step, computing, site
from sfm_kernel.lessons.sites.routes import DIRECT, Route
from sfm_kernel.lessons.sites.world import LabWorld

LAB: dict[str, Any] = {
    "rtt": 0.02,
    "rate": 500e6,
    "sites": {"A": RANKS // 2, "B": RANKS // 2},
}
CROSS = 200e6
"""Bits per second of foreign packets, in experiments that have them."""

GATEWAYS_HURT = 1.05


def iterations(
    lab: Lab, route: Route = DIRECT, names: Sequence[str] = ("BT",), count: int | None = None
) -> Iterator[Row]:
    """Iterations of each pattern, each rank in a different host, after one that is not counted.

    The time of an iteration is that of its slowest rank.
    """
    with LabWorld(lab, route) as world:
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
                **{name: after[name] - before[name] for name in COUNTED},
            }


def _named(steps: Iterable[Step]) -> list[Any]:
    """Steps as values of JSON, with the programs' names instead of ranks."""
    return [
        step
        if isinstance(step, float)
        else [[(f"r{to}", n) for to, n in step[0]], [f"r{source}" for source in step[1]]]
        for step in steps
    ]


def _play(programs: Sequence[Any], steps: list[list[Any]], count: int) -> list[float]:
    for program, its_steps in zip(programs, steps, strict=True):
        program.begin("play", steps=its_steps, iterations=count)
    times = [program.end()["seconds"] for program in programs]
    return [max(some) for some in zip(*times, strict=True)]


def table(measured: Sequence[Row]) -> list[Row]:
    """A row for each pattern: seconds of a direct iteration, and the ratio of each other route."""
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
        row |= {way: seconds[way] / direct if direct else None for way in seconds}
        through = seconds.get("gateway")
        if through and direct:
            row["gateway"] = through / direct
            row["a gateway"] = "hurts" if through > GATEWAYS_HURT * direct else (
                "helps" if direct > GATEWAYS_HURT * through else "does not matter")  # fmt: skip
        listed.append(row)
    return listed


def counts(measured: Sequence[Row]) -> list[Row]:
    """A row for each pattern and route: the counts of an iteration (Tables 4 and 6)."""
    return [
        {
            "pattern": row["measure"].removeprefix("nas "),
            "way": row["way"],
            "connections": row["connections"],
            **{name: row[name] / row["iterations"] for name in COUNTED},
        }
        for row in measured
        if row.get("pattern")
    ]
