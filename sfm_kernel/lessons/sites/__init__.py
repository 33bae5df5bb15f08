"""Sites far from each other: bare TCP and messages over long paths, in a lab on this machine.

Rows have the time of an operation, in seconds and in round trips of the path; ``late_ms`` is the
average delay by which the lab, or gateways that emulate the path, delivered late. An experiment
that was disturbed by that is repeated, and marked if it was disturbed again: such a row neither
meets nor misses a target.

Source: Glück and Mignot, "Splitting TCP for MPI Applications Executed on Grids", 2011.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from sfm_kernel.lessons.measure.arguments import names
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.sites import nas
from sfm_kernel.lessons.sites.counts import COUNTED
from sfm_kernel.lessons.sites.patterns import PATTERNS
from sfm_kernel.lessons.sites.routes import ROUTES, Route

MEASURES = (
    "tcp silence", "tcp bulk", "tcp loss", "start", "silence", "pairs 1", "pairs 2", "pairs 4",
    "pairs 8", "short", "sizes", "loss", "loss 4 MB", "loss small", "cut 5", "cut 15", "cut 60",
    "reset", "killed", "killed of two", "barrier", "requests", "requests 3",
)  # fmt: skip

NAS = tuple(f"nas {name}{cross}" for cross in ("", " cross") for name in PATTERNS)
"""The patterns, alone on the path and beside foreign packets."""

QUICK = ("tcp silence", "tcp bulk", "start", "silence", "reset")
AGAIN = 2
"""The number of times that a disturbed experiment is repeated."""


class Experiment(NamedTuple):
    """A measurement, and the lab for it.

    Attributes:
        function: called with the lab, ``arguments``, and the route unless ``ways`` is ``BARE``.
        lab: arguments of ``Lab``; a site gets another host for its gateways.
        gateways: the number of gateways in each site, if the route has any.
        ways: the names of the routes for which it makes sense.
    """

    function: Callable[..., Iterator[Row]]
    lab: dict[str, Any]
    arguments: Mapping[str, Any] = MappingProxyType({})
    gateways: int = 1
    ways: Sequence[str] = tuple(ROUTES)

    @property
    def playable(self) -> bool:
        """Whether gateways can emulate the path if there is no lab."""
        needs_no_lab = self.function.__module__.endswith((".pairs", ".sharing"))
        needs_no_lab |= self.function.__name__ == "killed"
        return needs_no_lab and set(self.lab) <= {"sites", "rtt", "rate"}


BARE = ("direct", "direct bbr")
THROUGH = tuple(name for name, route in ROUTES.items() if route.gateways)


def measures(quick: bool = False) -> dict[str, Experiment]:
    """Each experiment, by its name."""
    from sfm_kernel.lessons.sites import failing, pairs, plain, sharing

    silences = (0.0, 0.15, 0.3, 0.6, 1.2, 1.4, 2.0)
    # A connection that 8, 4, 2 pairs share, or that one pair uses alone, if each pair sends a
    # message every 1.4 s.
    shared = {"silences": (0.0, *(pairs.PAUSE / n for n in (8, 4, 2, 1))), "count": 1}
    alone = {"silences": (0.0, pairs.PAUSE) if quick else silences}
    near, far = {"rtt": 0.02, "rate": 500e6}, {"rtt": 0.1, "rate": 200e6}
    lossy = {"rtt": 0.02, "rate": 200e6, "loss": 1e-3}
    four = {**near, "sites": {"A": 4, "B": 4}}
    narrow, seconds = {"rtt": 0.02, "rate": 100e6}, 1.5 if quick else 6.0
    size, megabyte = (10_000_000 if quick else 50_000_000), 1 << 20
    lengths = (megabyte, 4 * megabyte, 48 * megabyte)
    count, all_cuts = (2 if quick else 5), (5.0, 15.0, 60.0)
    trips = {"length": 4 * megabyte, "count": 3 if quick else 15}
    short = {"count": 20, "amount": 16 << 20} if quick else {}
    listed = [
        Experiment(plain.silence, near, shared if quick else alone, ways=BARE),
        Experiment(plain.bulk, far, {"length": size}, ways=BARE),
        Experiment(plain.bulk, lossy, {"length": size}, ways=BARE),
        Experiment(pairs.start, far),
        Experiment(pairs.after_silence, near, {**alone, "count": count}),
        *(Experiment(pairs.silent_pairs, four, {"pairs": n, "count": count}) for n in (1, 2, 4, 8)),
        Experiment(pairs.short, {"rtt": 0.0002, "rate": 1e9}, short),
        Experiment(pairs.sizes, far, {"lengths": lengths, "amount": 48 * megabyte}),
        Experiment(pairs.sizes, lossy, {"lengths": (megabyte,), "amount": 48 * megabyte}),
        Experiment(pairs.small, lossy, trips),
        Experiment(pairs.small, lossy),
        *(Experiment(failing.cut, near, {"seconds": seconds}) for seconds in all_cuts),
        Experiment(failing.reset, near, {"resets": 1 if quick else 3}),
        Experiment(failing.killed, four, ways=THROUGH),
        Experiment(failing.killed, four, gateways=2, ways=THROUGH),
        Experiment(sharing.barrier, four),
        *(Experiment(sharing.requests, narrow, {"seconds": seconds, "bulks": n}) for n in (1, 3)),
    ]
    few = {"count": 1} if quick else {}
    played = [
        Experiment(nas.iterations, {**nas.LAB, "cross": cross}, {"names": (name,), **few})
        for cross in (0.0, nas.CROSS)
        for name in PATTERNS
    ]
    return dict(zip((*MEASURES, *NAS), (*listed, *played), strict=True))


def rows(
    *,
    only: Sequence[str] = MEASURES,
    ways: Sequence[str] = tuple(ROUTES),
    repeat: int = 1,
    quick: bool = False,
    play: bool = False,
) -> Iterator[Row]:
    """Measure; yield a row after each measurement. Every experiment gets a new lab.

    ``quick``: few and small experiments, and disturbed ones are not repeated.

    With ``play``, if this machine allows no lab, gateways emulate the path (``emulated``): only
    experiments and routes for which that is meaningful have rows, which are marked "played".

    Columns: measure, way, rtt_ms, rate_mbit_s, loss, round, what, seconds, rtts, late_ms,
    disturbed, played, and further columns of an experiment.

    Raises:
        LabRefused: this machine does not allow a lab. Nothing was measured.
        SFMError: a program of an experiment has failed.
    """
    known = measures(quick)
    for number in range(repeat):
        for measure in only:
            for way in ways:
                if way in known[measure].ways:
                    again = 0 if quick else AGAIN
                    for row in made(known[measure], ROUTES[way], play, again):
                        yield {"measure": measure, "way": way, "round": number, **row}


def made(
    experiment: Experiment, route: Route, play: bool = False, again: int = AGAIN
) -> Iterator[Row]:
    """The rows of one experiment, as in ``rows``; it need not be one of ``measures``."""
    from sfm_kernel.lessons.sites.emulated import Emulated
    from sfm_kernel.lessons.sites.lab import Disturbed, Lab, refusal

    about, arguments = dict(experiment.lab), dict(experiment.arguments)
    if experiment.ways is not BARE:
        arguments["route"] = route.with_gateways(experiment.gateways)
        if route.gateways:
            hosts = about.get("sites") or {"A": 1, "B": 1}
            about["sites"] = {site: count + 1 for site, count in hosts.items()}
    common = {
        "rtt_ms": about["rtt"] * 1e3,
        "rate_mbit_s": about["rate"] / 1e6,
        "loss": about.get("loss", 0.0),
    }
    played = play and bool(refusal())
    if played and not (route.gateways and experiment.playable):
        return
    for attempt in range(again + 1):
        with Emulated(**about) if played else Lab(algorithm=route.algorithm, **about) as lab:
            found = list(experiment.function(lab, **arguments))
            late, disturbed = lab.report()["late_mean_s"] * 1e3, False
            try:
                lab.check()
            except Disturbed:
                disturbed = True
        if not disturbed or attempt == again:
            break
    for row in found:
        yield {**common, **row, "late_ms": late, "disturbed": disturbed, "played": played}


def doubts(measured: Sequence[Row]) -> str:
    """The reasons to doubt these rows; empty if there are none."""
    if not measured:
        return "Nothing was measured: this needs a lab, and this machine allows none."
    reasons = []
    if any(row["played"] for row in measured):
        reasons.append(
            "Gateways have emulated the path: TCP has not seen it, and nothing goes directly."
        )
    late = {row["way"]: row["late_ms"] for row in measured if row["disturbed"]}
    if late:
        ways = ", ".join(f"{way} ({by:.1f} ms late)" for way, by in late.items())
        reasons.append(f"Disturbed, since this machine was busy: {ways}. Measure again.")
    return " ".join(reasons)


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each quantity of each experiment, over all rounds."""
    listed = []
    for (measure, what), group in grouped(measured, ("measure", "what")).items():
        row: Row = {"measure": measure, "what": what, "rtt_ms": group[0]["rtt_ms"]}
        for (way,), of_way in grouped(group, ("way",)).items():
            for column, unit in (("seconds", "s"), ("rtts", "RTT"), ("mbit_s", "Mbit/s")):
                values = [found[column] for found in of_way if found.get(column) is not None]
                if values:
                    row[f"{way}, {unit}"] = median(values)
            for column in ("ended", "unheard", "lost", "doubled"):
                values = [found[column] for found in of_way if column in found]
                if values:
                    row[f"{way}, {column}"] = values[-1] if column == "ended" else max(values)
        row["late_ms"] = max(found["late_ms"] for found in group)
        for mark in ("disturbed", "played"):
            row[mark] = "yes" if any(found.get(mark) for found in group) else ""
        listed.append(row)
    return listed


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: bare TCP, messages, patterns, counts."""
    listed = summary(measured)
    found = {
        "Bare TCP": [row for row in listed if row["measure"].startswith("tcp")],
        "Messages": [row for row in listed if not row["measure"].startswith(("tcp", "nas"))],
        "NAS: an iteration direct, and times that": nas.table(measured),
        "NAS: what the kernels have counted in an iteration": nas.counts(measured),
        "What the kernels have counted": counted(measured),
    }
    return {title: table for title, table in found.items() if table} or {"Sites": []}


def counted(measured: Sequence[Row]) -> list[Row]:
    """A row for each experiment and route with counts, if TCP has seen the path."""
    listed = []
    for (measure, way), group in grouped(measured, ("measure", "way")).items():
        some = [row for row in group if "restarts" in row and not row.get("played")]
        if some and measure not in NAS:
            row: Row = {"measure": measure, "way": way}
            listed.append(row | {name: some[-1][name] for name in ("connections", *COUNTED)})
    return listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons sites``."""
    parser.add_argument("--engines", type=int, choices=(2,), default=2, help="always 2")
    parser.add_argument(
        "--only", type=names((*MEASURES, *NAS), "experiment"), metavar="NAME,…",
        help=f"experiments, with * and ?: {', '.join(MEASURES)}; and, only if they are named, "
        f"{', '.join(NAS)}",
    )  # fmt: skip
    parser.add_argument(
        "--ways", type=names(tuple(ROUTES), "way"), metavar="NAME,…", help=", ".join(ROUTES)
    )


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    only, ways = _asked(options)
    return rows(only=only, ways=ways, repeat=options.repeat or 1, quick=options.quick, play=True)


def notes(options: argparse.Namespace) -> Iterator[str]:
    """A line about the experiments that this machine cannot show, which are left out."""
    from sfm_kernel.lessons.sites.emulated import CANNOT_SHOW
    from sfm_kernel.lessons.sites.lab import refusal

    if why := refusal():
        only, ways = _asked(options)
        known = measures(options.quick)
        out = [name for name in only if not known[name].playable]
        out += [way for way in ways if not ROUTES[way].gateways]
        yield f"{CANNOT_SHOW} Left out: {', '.join(out) or 'nothing'}. For a lab: {why}."


def _asked(options: argparse.Namespace) -> tuple[Sequence[str], Sequence[str]]:
    """The experiments and routes to measure; a quick run takes one route that works here."""
    from sfm_kernel.lessons.sites.lab import refusal

    quick = ("gateway",) if refusal() else ("direct",)
    return (
        options.only or (QUICK if options.quick else MEASURES),
        options.ways or (quick if options.quick else tuple(ROUTES)),
    )
