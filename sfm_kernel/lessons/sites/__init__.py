"""Sites far from each other: bare TCP and messages over long paths, in a lab on this machine.

Rows have the time of an operation, in seconds and in round trips of the path; ``late_ms`` is the
average delay by which the lab, or gateways that emulate the path, delivered late. An experiment
that was disturbed by that is repeated, and marked if it was disturbed again: such a row neither
meets nor misses a target. All experiments, with those that are repeated, take 15 minutes.

Source: Glück and Mignot, "Splitting TCP for MPI Applications Executed on Grids", 2011.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

from sfm_kernel.lessons.measure.arguments import names
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.sites import nas
from sfm_kernel.lessons.sites.counts import COUNTED
from sfm_kernel.lessons.sites.patterns import PATTERNS
from sfm_kernel.lessons.sites.routes import ROUTES, Route

MEASURES = (
    "tcp silence", "tcp bulk", "tcp loss", "start", "silence", "pairs 1", "pairs 2", "pairs 4",
    "pairs 8", "short", "beside tcp", "sizes", "loss", "loss 4 MB", "loss small", "cut 3", "cut 10",
    "cut 20", "reset", "died", "killed", "killed of two", "barrier", "requests", "requests 3",
)  # fmt: skip

NAS = tuple(f"nas {name}{cross}" for cross in ("", " cross") for name in PATTERNS)
"""The patterns, alone on the path and beside foreign packets."""

QUICK = ("tcp silence", "tcp bulk", "start", "silence", "reset")
AGAIN = 2
"""The number of times that a disturbed experiment is repeated, if ``LIMIT`` leaves time for it."""
LIMIT = 15 * 60.0
"""The seconds that all experiments may take on two cores, with those that are repeated."""


class Experiment(NamedTuple):
    """A measurement, and the lab for it.

    Attributes:
        function: called with the lab, ``arguments``, and the route unless ``ways`` is ``BARE``.
        lab: arguments of ``Lab``; a site gets another host for its gateways.
        arguments: further ones.
        gateways: the number of gateways in each site, if the route has any.
        ways: the names of the routes for which it makes sense.
        usual: the routes that are measured if the command line names none.
        seconds: the time that it takes on two cores, about, for one route.
    """

    function: Callable[..., Iterator[Row]]
    lab: dict[str, Any]
    arguments: Mapping[str, Any] = MappingProxyType({})
    gateways: int = 1
    ways: Sequence[str] = tuple(ROUTES)
    usual: Sequence[str] = ("direct", "direct bbr", "gateway")
    seconds: float = 10.0

    @property
    def playable(self) -> bool:
        """Whether gateways can emulate the path if there is no lab."""
        needs_no_lab = self.function.__module__.endswith((".pairs", ".sharing"))
        needs_no_lab |= self.function.__name__ == "killed"
        return needs_no_lab and set(self.lab) <= {"sites", "rtt", "rate"}


BARE = ("direct", "direct bbr")
THROUGH = tuple(name for name, route in ROUTES.items() if route.gateways)
SILENT = ("direct", "direct heartbeat", "gateway", "gateway cubic")
LOSSY = ("direct", "direct bbr", "gateway", "gateway cubic", "gateway cubic x4")


def measures(quick: bool = False) -> dict[str, Experiment]:
    """Each experiment, by its name."""
    from sfm_kernel.lessons.sites import failing, pairs, plain, sharing

    # A connection that 8, 4, 2 pairs share, or that one pair uses alone, if each pair sends a
    # message every 1.4 s.
    shared = {"silences": (0.0, *(pairs.PAUSE / n for n in (8, 4, 2, 1))), "count": 1}
    silences = {"silences": (0.0, 0.15, 0.3, 0.6, pairs.PAUSE), "count": 2}
    alone = {"silences": (0.0, pairs.PAUSE), "count": 2} if quick else silences
    near, far = {"rtt": 0.02, "rate": 500e6}, {"rtt": 0.1, "rate": 200e6}
    lossy = {"rtt": 0.02, "rate": 200e6, "loss": 1e-3}
    four = {**near, "sites": {"A": 4, "B": 4}}
    narrow, seconds = {"rtt": 0.02, "rate": 100e6}, 1.5 if quick else 2.5
    size, megabyte = (10_000_000 if quick else 20_000_000), 1 << 20
    lengths, amount = (megabyte, 4 * megabyte, 16 * megabyte), (48 if quick else 32) * megabyte
    count, all_cuts = (2 if quick else 3), (3.0, 10.0, 20.0)
    trips = {"length": 4 * megabyte, "count": 3 if quick else 6}
    short = {"count": 20, "amount": 16 << 20} if quick else {"amount": 32 << 20}
    listed = [
        Experiment(plain.silence, near, shared if quick else alone, ways=BARE, usual=BARE),
        Experiment(plain.bulk, far, {"length": size}, ways=BARE, usual=BARE),
        Experiment(plain.bulk, lossy, {"length": 10_000_000}, ways=BARE, usual=BARE),
        Experiment(pairs.start, far, seconds=4),
        Experiment(pairs.after_silence, near, alone, usual=SILENT),
        *(
            Experiment(
                pairs.silent_pairs, four, {"pairs": n, "count": count},
                usual=("direct", *THROUGH[: 2 if n == 8 else 1]), seconds=8 + n,
            )
            for n in (1, 2, 4, 8)
        ),
        Experiment(pairs.short, {"rtt": 0.0002, "rate": 1e9}, short, seconds=3),
        Experiment(
            plain.beside, near, {"length": 16 * megabyte, "count": count}, usual=("direct bbr",)
        ),
        Experiment(pairs.sizes, far, {"lengths": lengths, "amount": amount}, usual=LOSSY[:4]),
        Experiment(pairs.sizes, lossy, {"lengths": (megabyte,), "amount": amount // 2}, seconds=8),
        Experiment(pairs.small, lossy, trips, usual=LOSSY),
        Experiment(pairs.small, lossy, usual=LOSSY[1:]),
        *(
            Experiment(failing.cut, near, {"seconds": length}, seconds=7 + length)
            for length in all_cuts
        ),
        Experiment(failing.reset, near, {"resets": 1 if quick else 2}, seconds=7),
        Experiment(failing.died, near, {"count": count}, usual=("direct", "gateway")),
        *(
            Experiment(
                failing.killed, four, gateways=n, ways=THROUGH, usual=("gateway",), seconds=14
            )
            for n in (1, 2)
        ),
        Experiment(sharing.barrier, four),
        *(
            Experiment(
                sharing.requests, narrow, {"seconds": seconds, "bulks": n},
                usual=("direct", "gateway", "gateway cubic"), seconds=20,
            )
            for n in (1, 3)
        ),
    ]  # fmt: skip
    few = {"count": 1} if quick else {}
    played = [
        Experiment(
            nas.iterations, {**nas.LAB, "cross": cross}, {"names": (name,), **few},
            usual=tuple(ROUTES),
        )
        for cross in (0.0, nas.CROSS)
        for name in PATTERNS
    ]  # fmt: skip
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
    for part in _parts(only, ways, repeat, quick, play):
        yield from part.rows()


def _parts(
    only: Sequence[str], ways: Sequence[str] | None, repeat: int, quick: bool, play: bool
) -> list[Part]:
    """Each experiment on each route; without ``ways``, on its usual ones."""
    known, spare = measures(quick), [0.0]
    found = []
    for number in range(repeat):
        for measure in only:
            experiment = known[measure]
            for way in experiment.usual if ways is None else ways:
                if way in experiment.ways and not (play and _impossible(experiment, ROUTES[way])):
                    name = f"{measure}: {way}" + (f", round {number}" if repeat > 1 else "")
                    about: Row = {"measure": measure, "way": way, "round": number}
                    measured = partial(_made, about, experiment, spare, quick, play)
                    found.append(Part(name, measured, experiment.seconds))
    planned = sum(part.seconds for part in found)
    spare[0] = max(LIMIT - planned, planned / 10)
    return found


def _made(
    about: Row, experiment: Experiment, spare: list[float], quick: bool, play: bool
) -> Iterator[Row]:
    """The rows of an experiment; all share the seconds in ``spare`` in which one is repeated."""
    again = 0 if quick else max(min(AGAIN, int(spare[0] / experiment.seconds)), 0)
    started = time.monotonic()
    for row in made(experiment, ROUTES[about["way"]], play, again):
        yield about | row
    spare[0] -= max(time.monotonic() - started - experiment.seconds, 0.0)


def _impossible(experiment: Experiment, route: Route) -> bool:
    """Whether this machine allows no lab, and gateways cannot emulate the path either."""
    from sfm_kernel.lessons.sites.lab import refusal

    return bool(refusal()) and not (route.gateways and experiment.playable)


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
    if play and _impossible(experiment, route):
        return
    played = play and bool(refusal())
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


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for: each experiment on each route, with a lab of its own."""
    only, ways = _asked(options)
    return _parts(only, ways, options.repeat or 1, options.quick, play=True)


def notes(options: argparse.Namespace) -> Iterator[str]:
    """A line about the experiments that this machine cannot show, which are left out."""
    from sfm_kernel.lessons.sites.emulated import CANNOT_SHOW
    from sfm_kernel.lessons.sites.lab import refusal

    if why := refusal():
        only, ways = _asked(options)
        known = measures(options.quick)
        out = [name for name in only if not known[name].playable]
        out += [way for way in ways or ROUTES if not ROUTES[way].gateways]
        yield f"{CANNOT_SHOW} Left out: {', '.join(out) or 'nothing'}. For a lab: {why}."


def _asked(options: argparse.Namespace) -> tuple[Sequence[str], Sequence[str] | None]:
    """The experiments and routes to measure; a quick run takes one route that works here."""
    from sfm_kernel.lessons.sites.lab import refusal

    quick = ("gateway",) if refusal() else ("direct",)
    return (
        options.only or (QUICK if options.quick else MEASURES),
        options.ways or (quick if options.quick else None),
    )
