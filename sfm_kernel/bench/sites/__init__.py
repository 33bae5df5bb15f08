"""Sites far from each other: bare TCP and messages over long ways, in a lab on this machine.

Rows say how long something took, in seconds and in round trips of the way; ``late_ms`` how late
the lab delivered packets on average. An experiment that the lab has disturbed is repeated, and
marked where it was disturbed again.

Source: Glück and Mignot, "Splitting TCP for MPI Applications Executed on Grids", 2011.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from sfm_kernel.bench.arguments import at_least, names
from sfm_kernel.bench.rows import Row, grouped
from sfm_kernel.bench.sites import nas, verdicts
from sfm_kernel.bench.sites.counts import COUNTED
from sfm_kernel.bench.sites.patterns import PATTERNS
from sfm_kernel.bench.sites.ways import WAYS, Way

MEASURES = (
    "tcp silence", "tcp bulk", "tcp loss", "start", "silence", "pairs 1", "pairs 2", "pairs 4",
    "pairs 8", "short", "sizes", "loss", "loss 4 MB", "loss small", "cut 5", "cut 15", "cut 60",
    "reset", "killed", "killed of two", "barrier", "requests", "requests 3",
)  # fmt: skip

NAS = tuple(f"nas {name}{cross}" for cross in ("", " cross") for name in PATTERNS)
"""The patterns, alone on the way and beside other people's packets."""

QUICK = ("tcp silence", "tcp bulk", "start", "silence", "reset")
AGAIN = 2
"""How often an experiment is repeated that the lab has disturbed."""


class Experiment(NamedTuple):
    """What is measured, in which lab.

    Attributes:
        function: is given the lab, the way where ``ways`` has no ``bare``, and ``arguments``.
        lab: arguments of ``Lab``; a site gets another host for its gateways.
        gateways: of each site, where the way has any.
        ways: those that it makes sense for.
    """

    function: Callable[..., Iterator[Row]]
    lab: dict[str, Any]
    arguments: Mapping[str, Any] = MappingProxyType({})
    gateways: int = 1
    ways: Sequence[str] = tuple(WAYS)

    @property
    def playable(self) -> bool:
        """Whether gateways can play its way, where there is no lab."""
        is_whole = set(self.lab) <= {"sites", "rtt", "rate"}
        return is_whole and self.function.__module__.endswith((".pairs", ".sharing"))


BARE = ("direct", "direct bbr")
THROUGH = tuple(name for name, way in WAYS.items() if way.gateways)


def measures(quick: bool = False) -> dict[str, Experiment]:
    """Each experiment, by its name."""
    from sfm_kernel.bench.sites import failing, pairs, plain, sharing

    silences = (0.0, 1.2) if quick else (0.0, 0.15, 0.3, 0.6, 1.2, 1.4, 2.0)
    near, far = {"rtt": 0.02, "rate": 500e6}, {"rtt": 0.1, "rate": 200e6}
    lossy = {"rtt": 0.02, "rate": 200e6, "loss": 1e-3}
    four = {**near, "sites": {"A": 4, "B": 4}}
    narrow, seconds = {"rtt": 0.02, "rate": 100e6}, 2.0 if quick else 6.0
    size, megabyte = (10_000_000 if quick else 50_000_000), 1 << 20
    lengths = (megabyte, 4 * megabyte, 48 * megabyte)
    count, all_cuts = (2 if quick else 5), (5.0, 15.0, 60.0)
    trips = {"length": 4 * megabyte, "count": 3 if quick else 15}
    short = {"count": 20, "total": 16 << 20} if quick else {}
    listed = [
        Experiment(plain.silence, near, {"silences": silences}, ways=BARE),
        Experiment(plain.bulk, far, {"length": size}, ways=BARE),
        Experiment(plain.bulk, lossy, {"length": size}, ways=BARE),
        Experiment(pairs.start, far),
        Experiment(pairs.after_silence, near, {"silences": silences, "count": count}),
        *(Experiment(pairs.silent_pairs, four, {"pairs": n, "count": count}) for n in (1, 2, 4, 8)),
        Experiment(pairs.short, {"rtt": 0.0002, "rate": 1e9}, short),
        Experiment(pairs.sizes, far, {"lengths": lengths, "total": 48 * megabyte}),
        Experiment(pairs.sizes, lossy, {"lengths": (megabyte,), "total": 48 * megabyte}),
        Experiment(pairs.small, lossy, trips),
        Experiment(pairs.small, lossy),
        *(Experiment(failing.cut, near, {"seconds": one}) for one in all_cuts),
        Experiment(failing.reset, near, {"resets": 1 if quick else 3}),
        Experiment(failing.killed, four, ways=THROUGH),
        Experiment(failing.killed, four, gateways=2, ways=THROUGH),
        Experiment(sharing.barrier, four),
        *(Experiment(sharing.requests, narrow, {"seconds": seconds, "bulks": n}) for n in (1, 3)),
    ]
    few = {"count": 1} if quick else {}
    played = [
        Experiment(nas.iterations, {**nas.LAB, "cross": cross}, {"name": name, **few})
        for cross in (0.0, nas.CROSS)
        for name in PATTERNS
    ]
    return dict(zip((*MEASURES, *NAS), (*listed, *played), strict=True))


def rows(
    *,
    only: Sequence[str] = MEASURES,
    ways: Sequence[str] = tuple(WAYS),
    repeat: int = 1,
    quick: bool = False,
    play: bool = False,
) -> Iterator[Row]:
    """Measure; yield a row after each measurement. Every experiment has a lab of its own.

    With ``play``, where this machine allows no lab, gateways play the way (``emulated``): there are
    rows of experiments and ways for which that says something, and they are marked "played".

    Columns: measure, way, rtt_ms, rate_mbit_s, loss, round, what, seconds, rtts, late_ms,
    disturbed, and what an experiment adds.

    Raises:
        LabRefused: this machine does not allow a lab. Nothing was measured.
        SFMError: a program of an experiment has failed.
    """
    known = measures(quick)
    for number in range(repeat):
        for measure in only:
            for way in ways:
                if way in known[measure].ways:
                    for row in _rows(known[measure], WAYS[way], play):
                        yield {"measure": measure, "way": way, "round": number, **row}


def _rows(experiment: Experiment, way: Way, play: bool) -> Iterator[Row]:
    from sfm_kernel.bench.sites.emulated import Emulated
    from sfm_kernel.bench.sites.lab import Disturbed, Lab, refusal

    about, arguments = dict(experiment.lab), dict(experiment.arguments)
    if experiment.ways is not BARE:
        arguments["way"] = way.with_gateways(experiment.gateways)
        if way.gateways:
            hosts = about.get("sites") or {"A": 1, "B": 1}
            about["sites"] = {site: count + 1 for site, count in hosts.items()}
    common = {
        "rtt_ms": about["rtt"] * 1e3,
        "rate_mbit_s": about["rate"] / 1e6,
        "loss": about.get("loss", 0.0),
    }
    if play and refusal():
        if way.gateways and experiment.playable:
            with Emulated(**about) as played:
                for row in experiment.function(played, **arguments):
                    yield {**common, **row, "late_ms": 0.0, "disturbed": False, "played": True}
        return
    for attempt in range(AGAIN + 1):
        with Lab(algorithm=way.algorithm, **about) as lab:
            found = list(experiment.function(lab, **arguments))
            late, disturbed = lab.report()["late_mean_s"] * 1e3, False
            try:
                lab.check()
            except Disturbed:
                disturbed = True
        if not disturbed or attempt == AGAIN:
            break
    for row in found:
        yield {**common, **row, "late_ms": late, "disturbed": disturbed}


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each experiment and what it measured, over all rounds."""
    listed = []
    for (measure, what), group in grouped(measured, ("measure", "what")).items():
        row: Row = {"measure": measure, "what": what, "rtt_ms": group[0]["rtt_ms"]}
        for (way,), of_way in grouped(group, ("way",)).items():
            for column, unit in (("seconds", "s"), ("rtts", "RTT"), ("mbit_s", "Mbit/s")):
                values = [one[column] for one in of_way if one.get(column) is not None]
                if values:
                    row[f"{way}, {unit}"] = median(values)
            for column in ("ended", "unheard", "lost", "doubled"):
                values = [one[column] for one in of_way if column in one]
                if values:
                    row[f"{way}, {column}"] = values[-1] if column == "ended" else max(values)
        row["late_ms"] = max(one["late_ms"] for one in group)
        row["disturbed"] = "yes" if any(one["disturbed"] for one in group) else ""
        listed.append(row)
    return listed


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: bare TCP, messages, counts, and targets beside what was measured."""
    listed = summary(measured)
    found = {
        "Bare TCP": [row for row in listed if row["measure"].startswith("tcp")],
        "Messages": [row for row in listed if not row["measure"].startswith(("tcp", "nas"))],
        "NAS: an iteration direct, and times that": nas.table(measured),
        "NAS: what the kernels have counted in an iteration": nas.counts(measured),
        "What the kernels have counted": counted(measured),
        "Targets": verdicts.summary(measured),
    }
    return {title: table for title, table in found.items() if table}


def counted(measured: Sequence[Row]) -> list[Row]:
    """A row for each experiment and way that has counts."""
    listed = []
    for (measure, way), group in grouped(measured, ("measure", "way")).items():
        some = [row for row in group if "restarts" in row]
        if some and measure not in NAS:
            row: Row = {"measure": measure, "way": way}
            listed.append(row | {name: some[-1][name] for name in ("connections", *COUNTED)})
    return listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.bench sites``."""
    parser.add_argument("--engines", type=at_least(2), choices=(2,), default=2, help="always 2")
    parser.add_argument(
        "--only", type=names((*MEASURES, *NAS), "experiment"), metavar="NAME,…",
        help=f"experiments, with * and ?: {', '.join(MEASURES)}; and, only if they are named, "
        f"{', '.join(NAS)}",
    )  # fmt: skip
    parser.add_argument(
        "--ways", type=names(tuple(WAYS), "way"), metavar="NAME,…", help=", ".join(WAYS)
    )


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    return rows(
        only=options.only or (QUICK if options.quick else MEASURES),
        ways=options.ways or (("direct",) if options.quick else tuple(WAYS)),
        repeat=options.repeat or 1,
        quick=options.quick,
    )
