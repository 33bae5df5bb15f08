"""Ping-pong: the cost of sending data to another process and receiving it back.

The first mechanisms are those of Table 2 of the SFM paper, each building on the one before: bare
sockets; pickled data over a socket; SFM packets over a socket; and ``send``/``recv`` with their
queue. Alternatives are measured beside them. Mechanisms take turns, between two engines or, for
MPI and ipyparallel, two processes that are parked in between.

Source: Fedosov and Benson, "Communication with Super Flexible Messaging", section 5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

from sfm_kernel.errors import SFMError
from sfm_kernel.lessons.measure.arguments import above_zero, at_least, chosen, names
from sfm_kernel.lessons.measure.engines import START_SECONDS, driving, rank_of, serve_jobs
from sfm_kernel.lessons.measure.launched import LaunchedJob, absent, left_out, ranks
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.pingpong.links import OPENINGS, Links
from sfm_kernel.lessons.pingpong.mechanisms import ping, pong
from sfm_kernel.lessons.pingpong.messages import MESSAGES, TABLE_2, THREE, kind_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

# Table 2: mechanism -> message -> latency (µs), bandwidth (Mbit/s), on two machines of 2007.
# Its bandwidths fit 1 Mbit = 2**20 bits and one way, half a round trip (but for 128 B, where it
# seems to count the encoded bytes, too).
PAPER = {
    "sockets": {"bytes 128 B": (48, 20), "bytes 16 kB": (220, 568), "bytes 64 kB": (642, 778)},
    "pickle": {"bytes 128 B": (73, 16), "bytes 16 kB": (275, 453), "bytes 64 kB": (964, 518)},
    "SFM": {"bytes 128 B": (84, 14), "bytes 16 kB": (285, 439), "bytes 64 kB": (979, 511)},
    "SFM w/Q": {"bytes 128 B": (97, 13), "bytes 16 kB": (300, 417), "bytes 64 kB": (984, 508)},
}
MEGABIT = 2**20

PACKAGES = {"mpi4py pickled": "mpi4py", "mpi4py buffers": "mpi4py", "ipyparallel": "ipyparallel"}
"""Mechanism that starts other processes -> the package that it needs."""

_STARTING: dict[str, Callable[[], LaunchedJob]] = {
    "mpi4py": lambda: ranks("mpi4py", 2, "sfm_kernel.lessons.ranks"),
    "ipyparallel": lambda: LaunchedJob(
        "ipyparallel", 1, [sys.executable, "-m", f"{__name__}.ipyparallel"]
    ),
}

MECHANISMS = (*OPENINGS, *PACKAGES)

QUICK_MESSAGES = (THREE, *TABLE_2, "array 128 B", "array 1 MB")

DATA_ALONE = ("sockets", "unix sockets", "mpi4py buffers")
"""Mechanisms without attributes: they send only ``data``."""

LARGEST = {"SFM": 1 << 20, "ipyparallel": 64 << 10}
"""Bytes beyond which a mechanism is left out, since one round trip takes seconds: ``Packets``
decodes from the beginning with every chunk that comes, and ipyparallel takes milliseconds for any
message."""

UNTRACED = "SFM w/Q untraced"

MOST, FEWEST = 2000, 2
"""The largest and smallest number of round trips in one measurement."""

Ask = Callable[..., Any]
"""``ask(mechanism=..., message=..., count=..., warm_up=...)`` -> a mapping: seconds, route."""


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Play ping-pong for home, until it says stop. Runs on engines 0 (ping) and 1 (pong)."""
    rank = rank_of(sfm)
    with Links(sfm, 1 - rank) as links:

        def play(job: Message) -> Mapping[str, Any] | None:
            mechanism = links[job.mechanism]
            if rank == 1:
                pong(mechanism, job.message, job.count, job.warm_up)
                return None
            seconds = ping(mechanism, job.message, job.count, job.warm_up)
            return {"seconds": seconds, "route": mechanism.route}

        serve_jobs(sfm, "pingpong", play, home)


# The measurement, driven from home


def fits(mechanism: str, message: str) -> bool:
    """Whether this mechanism is measured with this message."""
    if mechanism == UNTRACED:  # compared with traced messages; their share is largest here
        return message == THREE
    if message == THREE and mechanism in DATA_ALONE:
        return False
    return MESSAGES[message] <= LARGEST.get(mechanism, MESSAGES[message])


def available(mechanisms: Sequence[str]) -> list[str]:
    """The mechanisms that can be measured on this machine."""
    return [name for name in mechanisms if name not in PACKAGES or absent(PACKAGES[name]) is None]


def rows(
    *,
    home: Endpoint | None = None,
    messages: Sequence[str] = tuple(MESSAGES),
    mechanisms: Sequence[str] = MECHANISMS,
    repeat: int = 3,
    seconds: float = 0.1,
    count: int | None = None,
) -> Iterator[Row]:
    """Measure every mechanism with every message; yield a row after each measurement.

    Mechanisms are interleaved: each of ``repeat`` rounds takes every message through all of them,
    one after the other, for about ``seconds`` each, or ``count`` round trips. Without ``home``,
    two local processes are started; with it (the endpoint of a notebook), engines 0 and 1 of its
    world must run ``serve(sfm)``. Mechanisms that are not installed are left out.

    Columns: message, kind ("attributes", "bytes", "array"), bytes, mechanism, route, round, count,
    latency_us and fastest_us (one way: half of a round trip; median and minimum),
    bandwidth_mbit_s (of the median, 1 Mbit = 2**20 bits).

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: the engines do not serve, or a process failed.
    """
    if repeat < 1 or (count is not None and count < 1) or not seconds > 0:
        raise ValueError(f"repeat {repeat}, count {count}, seconds {seconds}: all above 0")
    chosen(messages, list(MESSAGES), "message")
    chosen(mechanisms, MECHANISMS, "mechanism")
    cells = [
        (message, mechanism)
        for message, mechanism in product(messages, available(mechanisms))
        if fits(mechanism, message)
    ]
    counts: dict[tuple[str, str], int] = {}
    with _asking(home, {mechanism for _, mechanism in cells}) as asking:
        for number, (message, mechanism) in product(range(repeat), cells):
            ask = partial(asking[mechanism], mechanism=mechanism, message=message)
            if (message, mechanism) not in counts:
                counts[message, mechanism] = count or _fitting(ask, seconds)
            trips = counts[message, mechanism]
            done = ask(count=trips, warm_up=max(1, min(20, trips // 5)))
            latency = median(done["seconds"]) / 2
            yield {
                "message": message,
                "kind": kind_of(message),
                "bytes": MESSAGES[message],
                "mechanism": mechanism,
                "route": done["route"],
                "round": number,
                "count": trips,
                "latency_us": latency * 1e6,
                "fastest_us": min(done["seconds"]) / 2 * 1e6,
                "bandwidth_mbit_s": 8 * MESSAGES[message] / latency / MEGABIT,
            }


def _fitting(ask: Ask, seconds: float) -> int:
    """The number of round trips that take about ``seconds``. The first trial opens the channel."""
    trip = median(ask(count=1, warm_up=1)["seconds"])
    if trip < seconds / 10:
        trip = median(ask(count=3, warm_up=3)["seconds"])
    return max(FEWEST, min(MOST, int(seconds / trip)))


@contextmanager
def _asking(home: Endpoint | None, mechanisms: set[str]) -> Iterator[dict[str, Ask]]:
    """For each mechanism the function that asks its processes for a job."""
    with ExitStack() as stack:
        asking: dict[str, Ask] = {}
        if mechanisms - PACKAGES.keys():
            engines = stack.enter_context(driving("pingpong", serve, 2, home))
            # The first job has a time limit: engines that do not serve never answer.
            hello = {"mechanism": "SFM w/Q", "message": TABLE_2[0], "count": 1, "warm_up": 0}
            engines(timeout=START_SECONDS, engines=2, **hello)
            for mechanism in mechanisms - PACKAGES.keys():
                asking[mechanism] = partial(engines, engines=2)
        for kind in sorted({PACKAGES[name] for name in mechanisms & PACKAGES.keys()}):
            launched = stack.enter_context(_STARTING[kind]())
            for mechanism in mechanisms & {name for name in PACKAGES if PACKAGES[name] == kind}:
                asking[mechanism] = partial(launched.ask, "pingpong")
        yield asking


# Tables and plots


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each message and mechanism, over all rounds, with the paper's measurement."""
    listed = []
    for (message, mechanism), group in grouped(measured, ("message", "mechanism")).items():
        paper = PAPER.get(mechanism.removesuffix(" zmq"), {}).get(message, (None, None))
        listed.append(
            {
                "message": message,
                "mechanism": mechanism,
                "route": group[0]["route"],
                "latency_us": median(row["latency_us"] for row in group),
                "fastest_us": min(row["fastest_us"] for row in group),
                "bandwidth_mbit_s": median(row["bandwidth_mbit_s"] for row in group),
                "paper_2007_us": paper[0],
                "paper_2007_mbit_s": paper[1],
            }
        )
    return listed


ONE_MACHINE = (
    "SFM w/Q", UNTRACED, "mpi4py pickled", "mpi4py buffers", "Pipe", "unix sockets", "unix pickle",
)  # fmt: skip
NETWORK = (
    "sockets", "pickle", "SFM", "SFM w/Q zmq", "pyzmq tcp", "pyzmq tcp curve",
    "pyzmq ipc", "ipyparallel",
)  # fmt: skip

RATIOS = {
    "SFM / mpi4py pickled": ("SFM w/Q", "mpi4py pickled"),
    "SFM / mpi4py buffers": ("SFM w/Q", "mpi4py buffers"),
    "traced / untraced": ("SFM w/Q", UNTRACED),
    "zmq, encrypted / pyzmq tcp": ("SFM w/Q zmq", "pyzmq tcp"),
    "zmq / pyzmq, both encrypted": ("SFM w/Q zmq", "pyzmq tcp curve"),
}


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: the paper's Table 2, then all messages and mechanisms, then ratios."""
    listed = summary(measured)
    medians = {(row["message"], row["mechanism"]): row["latency_us"] for row in listed}
    messages = list(dict.fromkeys(row["message"] for row in listed))

    def pivot(mechanisms: Sequence[str]) -> list[Row]:
        columns = [name for name in mechanisms if any((m, name) in medians for m in messages)]
        if not columns:
            return []
        return [
            {"message": message} | {name: medians.get((message, name)) for name in columns}
            for message in messages
        ]

    ratios = [
        {"message": message}
        | {
            title: medians[message, measured] / medians[message, beside]
            for title, (measured, beside) in RATIOS.items()
            if (message, measured) in medians and (message, beside) in medians
        }
        for message in messages
    ]
    found = {
        "Table 2, then and now": [
            row for row in listed if row["message"] in TABLE_2 and row["mechanism"] in TABLE_2_ROWS
        ],
        "One way within a machine, µs (medians)": pivot(ONE_MACHINE),
        "One way as over a network, µs (medians)": pivot(NETWORK),
        "Ratios of medians": [row for row in ratios if len(row) > 1],
    }
    return {title: table for title, table in found.items() if table}


TABLE_2_ROWS = (*PAPER, "SFM w/Q zmq")


def plot(measured: Sequence[Row]) -> Figure:
    """Latency and bandwidth against size, of bytes or, without these, of arrays; 2007 dashed."""
    from sfm_kernel.lessons.pingpong.plots import Bandwidth, Latency
    from sfm_kernel.plots import still

    kinds = {row["kind"] for row in measured} - {"attributes"}
    if not kinds:
        raise SFMError("there is nothing to plot: measure bytes or arrays")
    shown = [row for row in measured if row["kind"] == max(kinds)]
    sizes = sorted({row["bytes"] for row in shown})
    return still(shown, Latency(sizes, then=then("us")), Bandwidth(sizes, then=then("mbit_s")))


def then(figure: str) -> dict[str, dict[int, float]]:
    """The paper's curves: mechanism -> bytes -> latency ("us") or bandwidth ("mbit_s")."""
    column = ("us", "mbit_s").index(figure)
    return {
        mechanism: {MESSAGES[message]: values[column] for message, values in figures.items()}
        for mechanism, figures in PAPER.items()
    }


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.lessons pingpong``."""
    parser.add_argument("--engines", type=int, choices=(2,), default=2, help="always 2")
    parser.add_argument("--seconds", type=above_zero, metavar="S", help="for each measurement")
    parser.add_argument("--count", type=at_least(1), metavar="C", help="or round trips for each")
    parser.add_argument(
        "--only", type=names(MECHANISMS, "mechanism"), metavar="NAME,…",
        help=f"mechanisms, with * and ?: {', '.join(MECHANISMS)}",
    )  # fmt: skip
    parser.add_argument(
        "--messages", type=names(list(MESSAGES), "message"), metavar="NAME,…",
        help="messages, with * and ?: '3 attributes', 'bytes 8 B' … 'array 64 MB'",
    )  # fmt: skip


def notes(options: argparse.Namespace) -> list[str]:
    """A line for each mechanism that is left out on this machine, with what to install."""
    return left_out(sorted({PACKAGES[name] for name in _mechanisms(options) if name in PACKAGES}))


def _mechanisms(options: argparse.Namespace) -> Sequence[str]:
    if options.only is not None:
        requested: Sequence[str] = options.only
        return requested
    # A cluster of ipyparallel takes seconds to start.
    return [name for name in MECHANISMS if name != "ipyparallel"] if options.quick else MECHANISMS


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for, in a part for each kind of message."""
    messages = options.messages or (QUICK_MESSAGES if options.quick else tuple(MESSAGES))
    repeat = options.repeat or (2 if options.quick else 3)
    seconds = options.seconds or (0.03 if options.quick else 0.1)
    measured = partial(
        rows,
        mechanisms=_mechanisms(options),
        repeat=repeat,
        seconds=seconds,
        count=options.count,
    )
    kinds: dict[str, list[str]] = {}
    for message in messages:
        kinds.setdefault(kind_of(message), []).append(message)
    return [
        Part(
            kind,
            partial(measured, messages=some),
            5 + (repeat + 1) * seconds * len(some) * len(_mechanisms(options)),
            repeat,
        )
        for kind, some in kinds.items()
    ]
