"""SFM's targets, beside its measurements on this machine.

Runs parts of ``pingpong``, ``inbox`` and ``peers``. If a target holds for several messages, the
table shows the message that is furthest from it; the tables before it show all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks import inbox, peers
from benchmarks.patterns import PATTERNS
from benchmarks.verdict import Pair, verdict
from sfm_kernel.lessons import pingpong
from sfm_kernel.lessons.measure.launched import left_out
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.pingpong.messages import SIZES, THREE

SMALL = tuple(
    f"{kind} {size}"
    for kind in ("bytes", "array")
    for size, nbytes in SIZES.items()
    if 128 <= nbytes <= 64 << 10
)
LARGE = ("array 1 MB", "array 16 MB", "array 64 MB")
ENCRYPTED = ("bytes 1 kB", "bytes 1 MB", "array 1 MB", "bytes 16 MB", "array 16 MB")
SHM, TCP = "SFM w/Q", "SFM w/Q tcp"
PICKLED, BUFFERS = "mpi4py pickled", "mpi4py buffers"
PYZMQ_TCP, PYZMQ_CURVE = "pyzmq tcp", "pyzmq tcp curve"
COMPARED = (SHM, PICKLED, BUFFERS, TCP, PYZMQ_TCP, PYZMQ_CURVE)
CROWDS = (8, 16)
DEPTHS = (0, 100_000)
TRACING = "tracing"
"""Ping-pong of only traced and untraced messages: their difference is small, so there are many
rounds, close to each other."""


# The measurement


def rows(
    *, repeat: int = 5, seconds: float = 0.1, quick: bool = False, mpi: bool = True
) -> Iterator[Row]:
    """Measure for all targets; the column ``benchmark`` names the source of each row.

    Args:
        repeat: rounds. seconds: for one measurement of ``pingpong``.
        quick: few and small measurements, to see that it works.
        mpi: whether mpi4py is measured, if it is installed.
    """
    mechanisms = [one for one in COMPARED if mpi or one not in pingpong.PACKAGES]
    everything = tuple(dict.fromkeys((THREE, *SMALL, *LARGE, *ENCRYPTED)))
    messages = (THREE, "array 128 B") if quick else everything
    yield from _tagged(
        TRACING,
        pingpong.rows(
            messages=(THREE,),
            mechanisms=(SHM, pingpong.UNTRACED),
            repeat=2 if quick else 4 * repeat,
            seconds=seconds,
        ),
    )
    yield from _tagged(
        "pingpong",
        pingpong.rows(messages=messages, mechanisms=mechanisms, repeat=repeat, seconds=seconds),
    )
    depths = (0, 1000) if quick else DEPTHS
    call = ("recv(tag=x)",)
    yield from _tagged("inbox", inbox.rows(depths=depths, calls=call, mpi=mpi, repeat=repeat))
    short: dict[str, Any] = {"seconds": 0.03, "blocked_seconds": 0.3, "calls": 20}
    crowds = (3,) if quick else CROWDS
    more = short if quick else {}
    yield from _tagged("peers", peers.rows(processes=crowds, mpi=mpi, repeat=repeat, **more))


def _tagged(benchmark: str, measured: Iterator[Row]) -> Iterator[Row]:
    return ({"benchmark": benchmark} | row for row in measured)


def part(measured: Sequence[Row], benchmark: str) -> list[Row]:
    """The rows of one benchmark, as it made them."""
    return [
        {name: value for name, value in row.items() if name != "benchmark"}
        for row in measured
        if row["benchmark"] == benchmark
    ]


# Tables


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each target: its name, the worst measurement, figures, verdict.

    ``ratio`` compares medians, ``by_fastest`` the fastest times of the same two.
    """
    return [
        *_of_pingpong(_latencies(part(measured, "pingpong"))),
        *_of_inbox(inbox.summary(part(measured, "inbox"))),
        *_of_crowds(peers.summary(part(measured, "peers"))),
        *_of_waiting(peers.summary(part(measured, "peers")), part(measured, TRACING)),
        *_of_memory(part(measured, "peers")),
    ]


Latencies = Mapping[tuple[str, str], Row]


def _latencies(measured: Sequence[Row]) -> Latencies:
    return {(row["message"], row["mechanism"]): row for row in pingpong.summary(measured)}


def _pairs(latencies: Latencies, messages: Sequence[str], one: str, other: str) -> list[Pair]:
    found = []
    for message in messages:
        mine, theirs = latencies.get((message, one)), latencies.get((message, other))
        if mine is not None and theirs is not None:
            medians = (mine["latency_us"], theirs["latency_us"])
            found.append(Pair(message, *medians, mine["fastest_us"], theirs["fastest_us"]))
    return found


def _of_pingpong(latencies: Latencies) -> list[Row]:
    def row(what: str, limit: float | None, messages: Sequence[str], one: str, other: str) -> Row:
        return verdict(what, limit, other, _pairs(latencies, messages, one, other))

    three = latencies.get((THREE, SHM))
    alone = [Pair("", three["latency_us"], 1.0, three["fastest_us"], 1.0)] if three else []
    everything = (THREE, *SMALL, *LARGE)
    return [
        row("3 attributes, one way", 0.5, (THREE,), SHM, PICKLED),
        verdict("3 attributes, one way: about 1 µs", 1.5, "1 µs", alone),
        row("128 B … 64 kB", 0.7, SMALL, SHM, PICKLED),
        row("128 B … 64 kB", 1.2, SMALL, SHM, BUFFERS),
        row("array of 1 … 64 MB", 1.0, LARGE, SHM, BUFFERS),
        row("array of 1 … 64 MB", 0.1, LARGE, SHM, PICKLED),
        row("over tcp, encrypted, small", None, (THREE,), TCP, PYZMQ_TCP),
        row("over tcp, encrypted, most", None, everything, TCP, PYZMQ_TCP),
        row("over tcp, both encrypted", 1.2, ENCRYPTED, TCP, PYZMQ_CURVE),
    ]


def _of_inbox(listed: Sequence[Row]) -> list[Row]:
    found = []
    for call, limit in (("recv(tag=x)", 1.5), (inbox.MPI, None)):
        ours = [row for row in listed if row["call"] == call]
        pairs = [
            Pair(f"{row['depth']:,}", row["us"], ours[0]["us"], row["fastest_us"],
                 ours[0]["fastest_us"])
            for row in ours[1:]
        ]  # fmt: skip
        found.append(verdict(f"{call} behind unmatched", limit, "empty inbox", pairs))
    return found


def _of_crowds(listed: Sequence[Row]) -> list[Row]:
    times = {(row["what"], row["processes"], row["mechanism"]): row for row in listed}
    found = []
    for pattern in PATTERNS:
        pairs = []
        for what, n, mechanism in times:
            if what == pattern and mechanism == peers.SFM and (what, n, peers.MPI) in times:
                ours, theirs = times[what, n, peers.SFM], times[what, n, peers.MPI]
                pairs.append(Pair(f"{n} processes", ours["us"], theirs["us"],
                                  ours["fastest_us"], theirs["fastest_us"]))  # fmt: skip
        found.append(verdict(f"{pattern}, crowded", 0.5, "mpi4py", pairs))
    return found


def _of_waiting(listed: Sequence[Row], tracing: Sequence[Row]) -> list[Row]:
    blocked = [
        Pair(row["what"].removeprefix(peers.BLOCKED_IN), row["percent"], 0.1)
        for row in listed
        if row["what"].startswith(peers.BLOCKED_IN) and row["mechanism"] == peers.SFM
    ]
    called = [
        Pair("median", row["us"], 60.0, row["fastest_us"], 60.0)
        for row in listed
        if row["what"] == peers.CALLBACK
    ]
    # The best round of each: in some rounds processes sleep, in others not, so that medians over
    # rounds would hide a difference of a few per cent.
    best = {
        mechanism: min(group, key=lambda row: row["latency_us"])
        for (mechanism,), group in grouped(tracing, ("mechanism",)).items()
    }
    traced = []
    if best:
        one, other = (best[mechanism] for mechanism in (SHM, pingpong.UNTRACED))
        traced = [
            Pair("best round", one["latency_us"], other["latency_us"],
                 one["fastest_us"], other["fastest_us"])
        ]  # fmt: skip
    return [
        verdict("blocked in recv, % of a core", 1.0, "0.1 %", blocked),
        verdict("trace and state recording", 1.05, "untraced", traced),
        verdict("callback, µs after the send", 1.0, "60 µs", called),
    ]


def _of_memory(measured: Sequence[Row]) -> list[Row]:
    def mib(processes: int) -> float | None:
        found = [
            row["bytes"] / 2**20
            for row in measured
            if row["what"] == peers.MEMORY and row["processes"] == processes
        ]
        return median(found) if found else None

    one, eight = (mib(processes) for processes in peers.WORLDS.values())
    return [
        verdict(
            "MB of an engine with 3 peers", 1.0, "4 MB",
            [] if one is None else [Pair("before large messages", one / 4, 4.0)],
        ),
        verdict(
            "MB of 8 engines and a notebook", 1.0, "64 MB",
            [] if eight is None else [Pair("before large messages", eight, 64.0)],
        ),
    ]  # fmt: skip


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: those of the benchmarks, then the targets."""
    shown = {
        **pingpong.tables(part(measured, "pingpong")),
        "Traced and untraced": pingpong.summary(part(measured, TRACING)),
        **inbox.tables(part(measured, "inbox")),
        **peers.tables(part(measured, "peers")),
    }
    # Only pingpong's run shows the paper's figures.
    shown.pop("Table 2, then and now", None)
    return shown | {"Targets (times in µs)": summary(measured)}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no options."""


def notes(options: argparse.Namespace) -> list[str]:
    """A line for each library that is left out on this machine, with what to install."""
    return left_out(["mpi4py"])


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    if options.quick:
        return rows(repeat=options.repeat or 2, seconds=0.02, quick=True)
    return rows(repeat=options.repeat or 5)
