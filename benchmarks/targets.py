"""SFM's targets, beside its measurements on this machine.

Runs parts of ``pingpong``, ``inbox``, ``peers`` and ``busy``, and C's ping-pong, which is the cost
of the hop itself. If a target holds for several messages, the
table shows the message that is furthest from it; the tables before it show all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import median

from benchmarks import busy as busy_machine
from benchmarks import inbox, peers
from benchmarks.patterns import PATTERNS
from benchmarks.verdict import Pair, having, verdict
from sfm_kernel.lessons import c, pingpong
from sfm_kernel.lessons.c import programs
from sfm_kernel.lessons.measure.arguments import at_least
from sfm_kernel.lessons.measure.launched import absent
from sfm_kernel.lessons.measure.results import Part
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
SHM, ZMQ = "SFM w/Q", "SFM w/Q zmq"
PICKLED, BUFFERS = "mpi4py pickled", "mpi4py buffers"
PYZMQ_TCP, PYZMQ_CURVE = "pyzmq tcp", "pyzmq tcp curve"
MECHANISMS = (SHM, PICKLED, BUFFERS, ZMQ, PYZMQ_TCP, PYZMQ_CURVE)
COMPARED = ("mpi4py",)
CROWDS = (8, 16)
DEPTHS = (0, 100_000)
BUSY = (1,)
"""Processes that compute meanwhile, in the part ``busy``."""
ADDED_US = 0.5
"""What three attributes may cost above the hop of 8 bytes between two C programs."""
TRACING = "tracing"
"""Ping-pong of only traced and untraced messages: their difference is small, so there are many
rounds, close to each other."""


# Tables


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each target: its name, the worst measurement, figures, verdict.

    ``ratio`` compares medians, ``by_fastest`` the fastest times of the same two.
    """
    rows_of = partial(having, measured, "part")
    crowds = peers.summary(rows_of("peers"))
    return [
        *_of_pingpong(_latencies(rows_of("pingpong"))),
        _of_hop(_latencies(rows_of("pingpong")), rows_of("hop")),
        *busy_machine.summary(rows_of("busy")),
        *_of_inbox(inbox.summary(rows_of("inbox"))),
        *_of_crowds(crowds),
        *_of_waiting(crowds, rows_of(TRACING)),
        *_of_memory(rows_of("peers")),
    ]


Latencies = Mapping[tuple[str, str], Row]


def _latencies(measured: Sequence[Row]) -> Latencies:
    return {(row["message"], row["mechanism"]): row for row in pingpong.summary(measured)}


def _pairs(latencies: Latencies, messages: Sequence[str], ours: str, theirs: str) -> list[Pair]:
    found = []
    for message in messages:
        measured, beside = latencies.get((message, ours)), latencies.get((message, theirs))
        if measured is not None and beside is not None:
            medians = (measured["latency_us"], beside["latency_us"])
            found.append(Pair(message, *medians, measured["fastest_us"], beside["fastest_us"]))
    return found


def _of_pingpong(latencies: Latencies) -> list[Row]:
    def row(what: str, limit: float | None, messages: Sequence[str], ours: str, theirs: str) -> Row:
        return verdict(what, limit, theirs, _pairs(latencies, messages, ours, theirs))

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
        row("over zmq, encrypted, small", None, (THREE,), ZMQ, PYZMQ_TCP),
        row("over zmq, encrypted, most", None, everything, ZMQ, PYZMQ_TCP),
        row("over zmq, both encrypted", 1.2, ENCRYPTED, ZMQ, PYZMQ_CURVE),
    ]


def _of_hop(latencies: Latencies, hops: Sequence[Row]) -> Row:
    three, one_way = latencies.get((THREE, SHM)), [row for row in hops if row["what"] == c.ONE_WAY]
    pairs = []
    if three and one_way:
        hop = median(row["latency_us"] for row in one_way)
        fastest = three["fastest_us"] - min(row["fastest_us"] for row in one_way)
        pairs = [Pair(f"hop {hop:.2f}", three["latency_us"] - hop, ADDED_US, fastest, ADDED_US)]
    return verdict("3 attributes, µs above C's hop of 8 B", 1.0, f"{ADDED_US:g} µs", pairs)


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
        for n in dict.fromkeys(row["processes"] for row in listed):
            ours = times.get((pattern, n, peers.SFM))
            mpi = times.get((pattern, n, peers.MPI))
            if ours and mpi:
                pairs.append(Pair(f"{n} processes", ours["us"], mpi["us"], ours["fastest_us"],
                                  mpi["fastest_us"]))  # fmt: skip
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
        traced_row, untraced_row = (best[mechanism] for mechanism in (SHM, pingpong.UNTRACED))
        traced = [
            Pair("best round", traced_row["latency_us"], untraced_row["latency_us"],
                 traced_row["fastest_us"], untraced_row["fastest_us"])
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

    four, eight = (mib(processes) for processes in peers.WORLDS.values())
    return [
        verdict(
            "MB of an engine with 3 peers", 1.0, "4 MB",
            [] if four is None else [Pair("before large messages", four / 4, 4.0)],
        ),
        verdict(
            "MB of 8 engines and a notebook", 1.0, "64 MB",
            [] if eight is None else [Pair("before large messages", eight, 64.0)],
        ),
    ]  # fmt: skip


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: those of the benchmarks, then the targets."""
    rows_of = partial(having, measured, "part")
    shown = {
        **pingpong.tables(rows_of("pingpong")),
        "Traced and untraced": pingpong.summary(rows_of(TRACING)),
        **inbox.tables(rows_of("inbox")),
        **peers.tables(rows_of("peers")),
    }
    # Only pingpong's run shows the paper's figures.
    shown.pop("Table 2, then and now", None)
    return shown | {"Targets (times in µs)": summary(measured)}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks targets``."""
    parser.add_argument(
        "--busy", type=_counts, metavar="n,n,…", help="processes that compute meanwhile (1)"
    )


def _counts(text: str) -> tuple[int, ...]:
    return tuple(map(at_least(0), text.split(",")))


def plan(options: argparse.Namespace) -> list[Part]:
    """Parts of other programs; their names tell the tables which rows are whose."""
    quick, mpi = options.quick, absent("mpi4py") is None
    repeat, seconds = options.repeat or (2 if quick else 5), 0.02 if quick else 0.1
    everything = tuple(dict.fromkeys((THREE, *SMALL, *LARGE, *ENCRYPTED)))
    messages = (THREE, "array 128 B") if quick else everything
    mechanisms = [name for name in MECHANISMS if mpi or name not in pingpong.PACKAGES]
    tracing = repeat if quick else 4 * repeat
    of_two = partial(pingpong.rows, seconds=seconds)
    traced = partial(of_two, messages=(THREE,), mechanisms=(SHM, pingpong.UNTRACED), repeat=tracing)
    compared = partial(of_two, messages=messages, mechanisms=mechanisms, repeat=repeat)
    depths = (0, 1000) if quick else DEPTHS
    behind = partial(inbox.rows, depths=depths, calls=("recv(tag=x)",), mpi=mpi, repeat=repeat)
    crowded = partial(peers.rows, processes=(3,) if quick else CROWDS, mpi=mpi, repeat=repeat)
    beside = partial(busy_machine.rows, busy=options.busy or BUSY, mpi=mpi, repeat=repeat)
    if quick:
        crowded = partial(crowded, seconds=0.03, blocked_seconds=0.3, calls=20)
        beside = partial(beside, processes=(2,), seconds=seconds)
    cells = (repeat + 1) * len(messages) * len(mechanisms)
    found = [
        Part(TRACING, traced, 1 + 2 * tracing * seconds, tracing),
        Part("pingpong", compared, 3 + cells * seconds, repeat),
        Part("inbox", behind, 3 if quick else 6, repeat),
        Part("peers", crowded, 8 if quick else 50, repeat),
        Part("busy", beside, 3 if quick else 4 * repeat, repeat),
    ]
    if programs.absent(programs.SFM) is None:
        found.append(Part("hop", partial(_hops, repeat, seconds), repeat, repeat))
    return found


def _hops(repeat: int, seconds: float) -> Iterator[Row]:
    hops = c.messages(sizes=("8 B",), mpich=False, repeat=repeat, seconds=seconds)
    return (row for row in hops if row["mechanism"] == c.C)
