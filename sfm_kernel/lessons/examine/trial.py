"""One trial: several processes call the student's function together.

The student's code runs in these processes. They are forks of a server that knows nothing of the
check; each gets its own arguments alone, and what they report is read as plain values.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import cloudpickle

from sfm_kernel.directory import root
from sfm_kernel.errors import CollectiveMismatch, ProcessFailed, RecvTimeout
from sfm_kernel.lessons.examine import plain
from sfm_kernel.lessons.examine.cell import Attempt
from sfm_kernel.lessons.examine.check import Arguments, Check
from sfm_kernel.lessons.examine.rank import Work, call
from sfm_kernel.observe.deadlocks import explanation
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.snapshot import snapshot
from sfm_kernel.spawn.forkserver import ForkServer
from sfm_kernel.spawn.job import Job
from sfm_kernel.spawn.process import Process
from sfm_kernel.spawn.report import Result
from sfm_kernel.watching import Watching

LATE = 0.03
"""Seconds between the other ranks' begin and that of a late rank."""

_PROOF, _INTERVAL = 0.8, 0.1
"""Seconds that a deadlock must last before it is reported; seconds between two snapshots."""

_MOST_REPORT = 64 << 20
"""Bytes of a process's result."""

_MODULES = ("mpi4py", "sfm_kernel.mpi.engines")
"""What the server imports for cells that use MPI; not mpi4py.MPI, which begins MPI."""

_SETTLING = 1.0
"""Seconds to wait for messages that were sent before all processes had returned."""


@dataclass
class Trial:
    """The result of one trial.

    Attributes:
        size, seed: the number of processes; the seed of their arguments.
        given: the arguments of each rank.
        late: the rank that began late; None if none did.
        values: the value that each rank has returned; None if not all have returned.
        failed: the rank that raised or died, and the description of that.
        hangs: why the processes hang; "" if they do not.
        slow: what the processes did when the time was over; "" if they had ended before.
        sent, between: the numbers of messages in all, and between sites.
        received: the number of messages that each rank has received.
        left: messages that were not received, in words.
        printed: the text that each rank has printed.
    """

    size: int
    seed: int
    given: Arguments
    late: int | None = None
    values: list[Any] | None = None
    failed: tuple[int, str] | None = None
    hangs: str = ""
    slow: str = ""
    sent: int = 0
    between: int = 0
    received: list[int] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


def arguments(check: Check, size: int, seed: int) -> tuple[Arguments, int | None]:
    """The arguments of each rank, and the rank that begins late, if one does."""
    given = check.given(size, Random(f"{check.name} {size} {seed}"))
    late = Random(seed * 1000 + size).randrange(size) if check.late and seed > 1 else None
    return given, late


def server() -> ForkServer:
    """A server for the processes of trials."""
    return ForkServer("sfm_kernel.lessons.examine.rank")


def trial(check: Check, attempt: Attempt, size: int, seed: int, forks: ForkServer) -> Trial:
    """Let ``size`` processes call the function.

    Blocks: until all have returned, one has failed, they hang, or the check's time is over.
    All processes have ended then.
    """
    given, late = arguments(check, size, seed)
    found = Trial(size, seed, given, late)
    with tempfile.TemporaryDirectory(prefix="sfm-check-") as folder:
        outputs = [os.path.join(folder, str(rank)) for rank in range(size)]
        works = [
            Work(
                attempt, check.name, tuple(given[rank]), LATE if rank == late else 0.0,
                check.buffering, check.mpi, outputs[rank],
            )
            for rank in range(size)
        ]  # fmt: skip
        _run(found, check, works, forks)
        found.printed = [_read(path) for path in outputs]
    return found


def _run(found: Trial, check: Check, works: Sequence[Work], forks: ForkServer) -> None:
    job = _Forks(works, check.sites(found.size) if check.sites else (), forks)
    watching = Watching(job.world, job.pids, _hangs, proof=_PROOF, every=_INTERVAL)
    try:
        with watching, job:
            try:
                found.values = job.results(check.seconds, watching)
            except RecvTimeout:
                _judge(found, os.path.join(root(), job.world))
                return
            job.count(found)
            job.end()
    except _Hangs as problem:
        found.hangs = str(problem)
    except ProcessFailed as problem:
        text = str(problem).partition("; the other processes")[0]
        found.failed = problem.rank, text.partition(f"rank {problem.rank} ")[2]
    except CollectiveMismatch as problem:
        found.failed = 0, f"and the others made different calls of a group: {problem}"


def _judge(found: Trial, folder: str) -> None:
    """Find out why processes have not ended in time."""
    try:
        diagnosis = explain(folder)
    except OSError:
        found.slow = "No process has published what it does."
        return
    if diagnosis["verdict"] == "deadlock":  # this machine was too busy to prove it in time
        found.hangs = explanation(diagnosis)
    else:
        found.slow = explanation(diagnosis)


class _Hangs(Exception):
    """The processes wait for each other for ever."""


def _hangs(why: str) -> None:
    raise _Hangs(why)


class _Forks(Job):
    """Workers that are forks of the server; each knows its own work alone."""

    _most_report = _MOST_REPORT

    def __init__(self, works: Sequence[Work], sites: Sequence[str], forks: ForkServer) -> None:
        super().__init__("check", len(works), call)
        self._works, self._sites, self._forks = works, sites, forks

    def _work(self, rank: int) -> bytes:
        pickled: bytes = cloudpickle.dumps((call, (self._works[rank],), {}))
        return pickled

    def _start(self, orders: int, report: int) -> Process:
        site = self._sites[len(self.pids())] if self._sites else ""
        modules = _MODULES if self._works[0].mpi else ()
        return self._forks.fork(f"{call.__module__}:main", [orders, report], modules, site=site)

    def _result(self, rank: int, result: Result | None, report: bytearray) -> Any:
        try:
            value, error = super()._result(rank, result, report)
        except (TypeError, ValueError):  # it is not what ``call`` returns
            raise ProcessFailed(rank, "has reported something else than a result") from None
        if error:  # otherwise the others wait for it, and that would be the report
            raise ProcessFailed(rank, str(error))
        return value

    def _loaded(self, value: bytes) -> Any:
        return plain.loaded(value)

    def count(self, found: Trial) -> None:
        """Count the messages of a trial: all processes have returned, and none has left yet."""
        processes = sorted(self._settled(), key=lambda process: process["rank"])
        site = {process["name"]: process["site"] for process in processes}
        for process in processes:
            found.sent += process["sent"]
            found.received.append(process["received"])
            found.between += sum(
                peer["sent"]
                for peer in process["peers"]
                if site.get(peer["name"]) != process["site"]
            )
            for message in process["messages"]:
                if not message["context_id"]:  # not a message of a library
                    attributes = ", ".join(
                        f"{name}={value}"
                        for name, value in message["attributes"]
                        if name not in ("src", "dest")
                    )
                    route = f"from {message['src']} to {process['name']}"
                    found.left.append(f"{route} ({attributes})" if attributes else route)

    def _settled(self) -> list[dict[str, Any]]:
        """A snapshot of the processes, taken when no message is on its way any more."""
        deadline, folder = time.monotonic() + _SETTLING, os.path.join(root(), self.world)
        while True:
            processes: list[dict[str, Any]] = snapshot(folder)["processes"]
            peers = [peer for process in processes for peer in process["peers"]]
            if (
                sum(peer["sent"] - peer["arrived"] for peer in peers) <= 0
                or time.monotonic() >= deadline
            ):
                return processes
            time.sleep(0.01)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:  # the rank has not begun
        return ""
