"""Many processes on few cores: round trips with one, many to one, and the cost of waiting.

SFM's processes and MPI's take turns; those that are not measured are parked. Besides the times of
messages it measures the processor time of a blocked process, the latency of a callback in an idle
process, and the shared memory of worlds in which all processes have exchanged messages.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from itertools import product
from operator import attrgetter
from statistics import median
from typing import TYPE_CHECKING, Any

import sfm_kernel
from benchmarks import RANKS
from benchmarks.memory import talk_to_all
from benchmarks.patterns import PATTERNS, WORK, Talk
from benchmarks.turns import Answer, in_turns
from sfm_kernel.lessons.measure.arguments import numbers
from sfm_kernel.lessons.measure.engines import driving, rank_of, serve_jobs
from sfm_kernel.lessons.measure.launched import absent, ranks
from sfm_kernel.lessons.measure.results import Part
from sfm_kernel.lessons.measure.rows import Row, grouped

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

COMPARED = ("mpi4py",)
PROCESSES = (2, 4, 8, 16)
SFM, MPI = "SFM", "mpi4py"
BLOCKED = {"recv()": {}, "recv(src=…)": {"src": 1}}
"""The call that blocks a process -> its template."""

CALLBACK, BLOCKED_IN, MEMORY = "callback", "blocked in ", "shared memory"
WORLDS = {"4 engines": 4, "8 engines and a notebook": 9}
"""A world whose shared memory is measured -> its number of processes."""

MOST = 2000
"""The largest number of rounds, or of messages of each sender, in one measurement."""

PAUSE = 0.003
"""Seconds between two messages for a callback, in which its process falls asleep again."""


# The work of one process


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Do home's measurements, until it says stop. Runs on every engine."""
    works = {"pattern": _pattern, "blocked": _blocked, "callback": _callback}
    serve_jobs(sfm, "peers", lambda job: works[job.work](sfm, job), home)


def _pattern(sfm: Endpoint, job: Message) -> Mapping[str, Any]:
    talk = Talk(
        rank=rank_of(sfm),
        size=job.engines,
        to_root=partial(sfm.send, dest=0, tag="work", **WORK),
        from_any=partial(sfm.recv, tag="work"),
        answers=[partial(sfm.send, dest=n, tag="answer", **WORK) for n in range(1, job.engines)],
        from_root=partial(sfm.recv, src=0, tag="answer"),
        opened=attrgetter(*WORK),
    )
    return {"seconds": PATTERNS[job.pattern](talk, job.count)}


def _blocked(sfm: Endpoint, job: Message) -> Mapping[str, Any] | None:
    """The share of a core that engine 0 uses in one ``recv``, which engine 1 ends."""
    if sfm.rank == 1:
        sfm.recv(src=0, tag="blocks now")
        time.sleep(job.seconds)
        sfm.send(dest=0, tag="wake")
    if sfm.rank != 0:
        return None
    template = BLOCKED[job.how]
    sfm.send(dest=1, tag="blocks now")
    before, started = time.process_time(), time.monotonic()
    sfm.recv(**template)
    return {"share": (time.process_time() - before) / (time.monotonic() - started)}


def _callback(sfm: Endpoint, job: Message) -> Mapping[str, Any] | None:
    """Seconds from each ``send`` on engine 1 to the call on engine 0, which does nothing else."""
    if sfm.rank == 1:
        sfm.recv(src=0, tag="listens now")
        for _ in range(job.count):
            time.sleep(PAUSE)
            sfm.send(dest=0, tag="call", sent=time.monotonic())  # one clock for the machine
    if sfm.rank != 0:
        return None
    seconds: list[float] = []
    all_called = threading.Event()

    def called(message: Message) -> None:
        seconds.append(time.monotonic() - message.sent)
        if len(seconds) == job.count:
            all_called.set()

    with sfm.regcb(called, tag="call"):
        sfm.send(dest=1, tag="listens now")
        all_called.wait()
    return {"seconds": seconds}


# The measurement


def rows(
    *,
    processes: Sequence[int] = PROCESSES,
    mpi: bool = True,
    repeat: int = 5,
    seconds: float = 0.3,
    blocked_seconds: float = 5.0,
    calls: int = 300,
) -> Iterator[Row]:
    """Measure on 2, 4, … local processes; yield a row after each measurement.

    Each of ``repeat`` rounds takes every pattern through SFM and mpi4py (if it is installed and
    ``mpi`` is true), for about ``seconds`` each. With two processes, also a blocked process
    (for ``blocked_seconds``) and ``calls`` callbacks a round. At the end, memory.

    Columns: what, processes, mechanism, round, and one or more of us (one message; the median of
    callbacks), fastest_us (callbacks), percent (of a core), bytes.

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: a process failed.
    """
    if repeat < 1 or not processes or min(processes) < 2:
        raise ValueError(f"repeat {repeat}: at least 1; processes {list(processes)}: at least 2")
    if calls < 1 or not seconds > 0 or not blocked_seconds > 0:
        raise ValueError(
            f"calls {calls}, seconds {seconds}, {blocked_seconds}: all must be above 0"
        )
    mpi = mpi and absent("mpi4py") is None
    for n in processes:
        yield from patterns(n, mpi, repeat, seconds)
    yield from _waiting(mpi, repeat, blocked_seconds, calls)
    yield from _memory(repeat)


def patterns(n: int, mpi: bool, repeat: int, seconds: float) -> Iterator[Row]:
    """Every pattern on ``n`` processes, through SFM and, if ``mpi``, mpi4py; see ``rows``."""
    with ExitStack() as stack:
        engines = stack.enter_context(driving("peers", serve, n))
        asking: dict[str, Callable[[str, int], Answer]] = {
            SFM: lambda pattern, count: engines(
                work="pattern", engines=n, pattern=pattern, count=count
            )
        }
        if mpi:
            launched = stack.enter_context(ranks("mpi4py", n, RANKS))
            asking[MPI] = lambda pattern, count: launched.ask("pattern", name=pattern, count=count)
        each = seconds / (2 * (n - 1))  # a round of a pattern has so many messages
        for number, pattern, mechanism, found in in_turns(
            asking, tuple(PATTERNS), repeat, each, MOST
        ):
            about: Row = {"what": pattern, "processes": n, "mechanism": mechanism}
            yield about | {"round": number, "us": 1e6 * found["seconds"]}


def _waiting(mpi: bool, repeat: int, blocked_seconds: float, calls: int) -> Iterator[Row]:
    with (
        driving("peers", serve, 2) as ask,
        ranks("mpi4py", 2, RANKS) if mpi else nullcontext() as launched,
    ):
        for number in range(repeat):
            done = ask(work="callback", engines=2, count=calls)
            about: Row = {"processes": 2, "mechanism": SFM, "round": number}
            times = {"us": median(done.seconds) * 1e6, "fastest_us": min(done.seconds) * 1e6}
            yield {"what": CALLBACK} | about | times
        for number in range(min(repeat, 2)):
            about = {"processes": 2, "mechanism": SFM, "round": number}
            for how in BLOCKED:
                share = ask(work="blocked", engines=2, how=how, seconds=blocked_seconds).share
                yield {"what": BLOCKED_IN + how} | about | {"percent": 100 * share}
            if launched is not None:
                share = launched.ask("blocked", seconds=blocked_seconds / 5)["share"]
                about["mechanism"] = MPI
                yield {"what": f"{BLOCKED_IN}recv()"} | about | {"percent": 100 * share}


def _memory(repeat: int) -> Iterator[Row]:
    for number, (world, n) in product(range(min(repeat, 2)), WORLDS.items()):
        nbytes = sfm_kernel.run(talk_to_all, n)[0]
        about: Row = {"what": MEMORY, "processes": n, "mechanism": world, "round": number}
        yield about | {"bytes": nbytes}


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each measured quantity, over all rounds: medians, and the smallest."""
    columns = ("us", "fastest_us", "percent", "bytes")
    listed = []
    for key, group in grouped(measured, ("what", "processes", "mechanism")).items():
        row: Row = dict(zip(("what", "processes", "mechanism"), key, strict=True))
        for column in [column for column in columns if column in group[0]]:
            values = [row[column] for row in group]
            row[column] = min(values) if column == "fastest_us" else median(values)
        if row["what"] in PATTERNS:
            row["fastest_us"] = min(row["us"] for row in group)
        listed.append(row)
    return listed


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: patterns with SFM and MPI side by side, waiting, memory."""
    found: dict[str, list[Row]] = {"One message, µs": [], "Waiting": [], "Shared memory": []}
    listed = summary(measured)
    for (pattern, n), group in grouped(listed, ("what", "processes")).items():
        if pattern not in PATTERNS:
            continue
        row: Row = {"what": pattern, "processes": n}
        for one in group:
            row |= {one["mechanism"]: one["us"], f"{one['mechanism']} fastest": one["fastest_us"]}
        if MPI in row:
            row["SFM / mpi4py"] = row[SFM] / row[MPI]
        found["One message, µs"].append(row)
    for row in listed:
        if row["what"] == MEMORY:
            each = row["bytes"] / row["processes"]
            mib = {"all_mib": row["bytes"] / 2**20, "each_mib": each / 2**20}
            found["Shared memory"].append({"who": row["mechanism"]} | mib)
        elif row["what"] not in PATTERNS:
            shown = ("what", "mechanism", "us", "fastest_us", "percent")
            found["Waiting"].append({name: row[name] for name in shown if name in row})
    return {title: table for title, table in found.items() if table}


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m benchmarks peers``."""
    parser.add_argument("--processes", type=numbers, metavar="n,n,…", help="how many")


def plan(options: argparse.Namespace) -> list[Part]:
    """What the command line asks for: each number of processes, waiting, memory."""
    mpi = absent("mpi4py") is None
    repeat = options.repeat or (2 if options.quick else 5)
    seconds, blocked, calls = (0.03, 0.5, 50) if options.quick else (0.3, 5.0, 300)
    each = 1 + 4 * (repeat + 1) * seconds
    waiting = 2 + min(repeat, 2) * 2.2 * blocked + repeat * calls * 2 * PAUSE
    return [
        *(
            Part(f"{n} processes", partial(patterns, n, mpi, repeat, seconds), each + n / 2, repeat)
            for n in options.processes or (PROCESSES[:2] if options.quick else PROCESSES)
        ),
        Part("waiting", partial(_waiting, mpi, repeat, blocked, calls), waiting, repeat),
        Part("memory", partial(_memory, repeat), 2 * min(repeat, 2), min(repeat, 2)),
    ]
