"""MPI's interface: what it costs above SFM's own calls, and beside the real mpi4py.

Ping-pong of buffers (``Send``, ``Recv``) and of pickled objects (``send``, ``recv``), and a few
collectives. The same two processes use the endpoint itself and ``sfm_kernel.mpi.MPI`` in turn;
those of mpi4py are parked meanwhile. The last table compares with what SFM wants to reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

from sfm_kernel.bench import collectives, communicator
from sfm_kernel.bench.arguments import numbers
from sfm_kernel.bench.engines import driving, rank_of, serve_jobs
from sfm_kernel.bench.mechanisms import Mechanism, Queue, Way, from_dict, ping, pong
from sfm_kernel.bench.messages import MESSAGES, SIZES, THREE, Attributes, chosen
from sfm_kernel.bench.others.crew import Crew, absent, left_out
from sfm_kernel.bench.rows import Row, grouped
from sfm_kernel.bench.targets import Pair, verdict
from sfm_kernel.collectives import Group

if TYPE_CHECKING:
    from sfm_kernel.endpoint import Endpoint
    from sfm_kernel.message import Message

OWN, VIEW, INTERFACE, MPI4PY = "SFM", "SFM's view", "SFM's MPI", "mpi4py"
"""The mechanisms: the endpoint's calls, or those of ``collectives.Group``; the endpoint's without
the copy into memory of the receiver's, which ``Recv`` has to make; the same processes through
``sfm_kernel.mpi.MPI``; and the real mpi4py. All send the same: objects as one value."""

MECHANISMS = (OWN, VIEW, INTERFACE, MPI4PY)

BUFFERS, OBJECTS = "Send, Recv", "send, recv"
MESSAGES_OF = {
    BUFFERS: tuple(f"array {size}" for size, nbytes in SIZES.items() if nbytes <= 16 << 20),
    OBJECTS: (THREE, "bytes 1 kB", "bytes 64 kB", "array 1 kB", "array 1 MB"),
}
"""Calls -> what is sent with them."""

QUICK = {BUFFERS: ("array 8 B", "array 1 MB"), OBJECTS: (THREE,)}
CALLS = (collectives.BARRIER, collectives.SMALL, collectives.ARRAY, collectives.BCAST)
PROCESSES = (2, 4)

LIMIT = 1.5
"""What a message may cost through MPI's interface, in what it costs through the endpoint's."""

MOST, FEWEST = 20_000, 2
"""Round trips or calls of one measurement."""


class Filled(Queue):
    """``send`` and ``recv`` of data that end up in memory of the receiver's, as with ``Recv``."""

    def way(self, attributes: Attributes) -> Way:
        way, memory = super().way(attributes), attributes["data"].copy()

        def opened(m: Message) -> Any:
            memory[:] = m.data
            return memory

        return Way(way.send, way.receive, opened)


class Whole(Queue):
    """``send`` and ``recv`` of the attributes as one value, as the other calls send an object."""

    def way(self, attributes: Attributes) -> Way:
        send, recv, peer, opened = self.sfm.send, self.sfm.recv, self.peer, from_dict(attributes)
        return Way(
            lambda: send(dest=peer, value=attributes),
            lambda: recv(src=peer),
            lambda m: opened(m.value),
        )


# The work of one process


def serve(sfm: Endpoint, home: str = "home") -> None:
    """Measure as home tells, until it says stop. Runs on every engine."""
    from sfm_kernel.mpi.engine.process import use
    from sfm_kernel.mpi.MPI import COMM_WORLD

    rank = rank_of(sfm)
    use(sfm)  # a process may have more endpoints than this one
    comm = COMM_WORLD.Dup()
    group = Group(sfm, range(comm.size))
    route = sfm.route_kind(1 - rank) if rank < 2 <= comm.size else ""
    ways: dict[tuple[str, str], Mechanism] = {
        (OWN, BUFFERS): Filled(sfm, 1 - rank),
        (VIEW, BUFFERS): Queue(sfm, 1 - rank),
        (OWN, OBJECTS): Whole(sfm, 1 - rank),
        (INTERFACE, BUFFERS): communicator.Buffers(comm, route),
        (INTERFACE, OBJECTS): communicator.Pickled(comm, route),
    }
    calls = {OWN: collectives.calls_of(group), INTERFACE: communicator.calls_of(comm)}

    def work(job: Message) -> Mapping[str, Any] | None:
        if job.what in CALLS:
            call = calls[job.mechanism][job.what]
            return {"us": [1e6 * collectives.timed(call, group.barrier, job.count)]}
        way = ways[job.mechanism, job.what]
        if rank == 1:
            pong(way, job.message, job.count, job.warm_up)
        if rank != 0:
            return None
        trips = ping(way, job.message, job.count, job.warm_up)
        return {"us": [trip / 2 * 1e6 for trip in trips]}

    serve_jobs(sfm, "mpi", work, home)


# The measurement

Ask = Callable[[str, str, int, int], Sequence[float]]
"""``ask(what, message, count, warm_up)`` -> microseconds: of each message one way, or of a call."""


def rows(
    *,
    processes: Sequence[int] = PROCESSES,
    messages: Mapping[str, Sequence[str]] = MESSAGES_OF,
    calls: Sequence[str] = CALLS,
    mpi: bool = True,
    repeat: int = 3,
    seconds: float = 0.1,
) -> Iterator[Row]:
    """Measure on 2, 4, … local processes; yield a row after each measurement.

    Each of ``repeat`` rounds takes every message and call through all mechanisms, one after the
    other, for about ``seconds`` each. Messages are measured with 2 processes alone, mpi4py only if
    it is installed and ``mpi`` is true.

    Columns: what (``Send, Recv``; ``send, recv``; a collective call), message ("" for calls),
    processes, mechanism, round, count, us (a message one way, or a call; on rank 0; median), and
    fastest_us.

    Raises:
        ValueError: an argument is out of range; nothing was started.
        SFMError: a process failed.
    """
    if repeat < 1 or not processes or min(processes) < 1 or not seconds > 0:
        raise ValueError(
            f"repeat {repeat} and processes {list(processes)}: at least 1; seconds {seconds}: more "
            f"than 0"
        )
    chosen(list(messages), (BUFFERS, OBJECTS), "call")
    chosen([message for some in messages.values() for message in some], list(MESSAGES), "message")
    chosen(calls, CALLS, "call")
    pairs = [(what, message) for what, some in messages.items() for message in some]
    for n in processes:
        cells = [*(pairs if n == 2 else []), *((call, "") for call in calls)]
        with ExitStack() as stack:
            asking = _asking(stack, n, mpi and absent("mpi4py") is None)
            counts: dict[tuple[str, str, str], int] = {}
            for number, (what, message), mechanism in product(range(repeat), cells, asking):
                if mechanism == VIEW and what != BUFFERS:
                    continue
                ask, cell = asking[mechanism], (what, message, mechanism)
                if cell not in counts:  # the first opens the ways; the second says how many fit
                    ask(what, message, 1, 1)
                    us = median(ask(what, message, 3, 3))
                    counts[cell] = max(FEWEST, min(MOST, int(seconds * 1e6 / us)))
                count = counts[cell]
                found = ask(what, message, count, max(1, min(20, count // 5)))
                about: Row = {"what": what, "message": message, "processes": n}
                about |= {"mechanism": mechanism, "round": number, "count": count}
                yield about | {"us": median(found), "fastest_us": min(found)}


def _asking(stack: ExitStack, n: int, mpi: bool) -> dict[str, Ask]:
    """For each mechanism, how to ask its processes for a measurement."""
    stop = {"stop": True, "engines": n}
    engines = stack.enter_context(driving("mpi", serve, n, None, stop=stop))

    def of(mechanism: str) -> Ask:
        def ask(what: str, message: str, count: int, warm_up: int) -> Sequence[float]:
            job = {"what": what, "message": message, "count": count, "warm_up": warm_up}
            found: Sequence[float] = engines(engines=n, mechanism=mechanism, **job).us
            return found

        return ask

    asking: dict[str, Ask] = {one: of(one) for one in (OWN, VIEW, INTERFACE)}
    if mpi:
        crew = stack.enter_context(Crew("mpi4py", n))

        def ask(what: str, message: str, count: int, warm_up: int) -> Sequence[float]:
            if what in CALLS:
                return [1e6 * float(crew.ask("collective", call=what, count=count)["seconds"])]
            kind = {BUFFERS: "mpi4py buffers", OBJECTS: "mpi4py pickled"}[what]
            job = {"mechanism": kind, "message": message, "count": count, "warm_up": warm_up}
            return [trip / 2 * 1e6 for trip in crew.ask("pingpong", **job)["seconds"]]

        asking[MPI4PY] = ask
    return asking


# What is shown of it


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each message and call: medians and fastest of all mechanisms, and ratios."""
    listed = []
    for (what, message, n), group in grouped(measured, ("what", "message", "processes")).items():
        row: Row = {"what": what, "message": message, "processes": n}
        for (mechanism,), times in grouped(group, ("mechanism",)).items():
            row[f"{mechanism} us"] = median(one["us"] for one in times)
            row[f"{mechanism} fastest"] = min(one["fastest_us"] for one in times)
        for other in (OWN, VIEW, MPI4PY):
            if f"{other} us" in row:
                row[f"MPI / {other}"] = row[f"{INTERFACE} us"] / row[f"{other} us"]
        listed.append(row)
    return listed


def tables(measured: Sequence[Row]) -> dict[str, list[Row]]:
    """Title -> table: messages, collectives, then the targets."""
    listed = summary(measured)
    messages = [row for row in listed if row["what"] not in CALLS]
    calls = [_without(row, "message") for row in listed if row["what"] in CALLS]
    targets = [
        verdict(f"{what}, one way", LIMIT, "the endpoint", _pairs(messages, what, OWN))
        for what in (BUFFERS, OBJECTS)
    ]
    targets.append(
        verdict(
            f"{BUFFERS}, one way", LIMIT, "the endpoint's view", _pairs(messages, BUFFERS, VIEW)
        )
    )
    targets += [
        verdict(f"{what}, one way", None, "mpi4py", _pairs(messages, what, MPI4PY))
        for what in (BUFFERS, OBJECTS)
    ]
    for call in CALLS:
        for other, name in ((OWN, "Group"), (MPI4PY, "mpi4py")):
            targets.append(verdict(call, None, name, _pairs(listed, call, other)))
    found = {
        "Messages, one way (µs)": [_without(row, "processes") for row in messages],
        "Collectives (µs)": calls,
        "Targets (times in µs)": targets,
    }
    return {title: table for title, table in found.items() if table}


def _without(row: Row, column: str) -> Row:
    return {name: value for name, value in row.items() if name != column}


def _pairs(listed: Sequence[Row], what: str, other: str) -> list[Pair]:
    return [
        Pair(
            row["message"] or f"{row['processes']} processes",
            row[f"{INTERFACE} us"],
            row[f"{other} us"],
            row[f"{INTERFACE} fastest"],
            row[f"{other} fastest"],
        )
        for row in listed
        if row["what"] == what and f"{other} us" in row
    ]


# The command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``python -m sfm_kernel.bench mpi``."""
    parser.add_argument("--processes", type=numbers, metavar="n,n,…", help="how many")


def notes(options: argparse.Namespace) -> list[str]:
    """What is left out here, and how to get it."""
    return left_out(["mpi4py"])


def measure(options: argparse.Namespace) -> Iterator[Row]:
    """The rows that the command line asks for."""
    return rows(
        processes=options.processes or (PROCESSES[:1] if options.quick else PROCESSES),
        messages=QUICK if options.quick else MESSAGES_OF,
        repeat=options.repeat or (2 if options.quick else 5),
        seconds=0.02 if options.quick else 0.1,
    )
