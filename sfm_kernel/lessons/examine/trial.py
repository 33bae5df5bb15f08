"""One trial: several processes, forks of this one, call the student's function together."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from sfm_kernel.directory import root
from sfm_kernel.errors import CollectiveMismatch, ProcessFailed, RecvTimeout
from sfm_kernel.lessons.examine.cell import Attempt
from sfm_kernel.lessons.examine.check import Arguments, Check
from sfm_kernel.lessons.examine.rank import Outcome, Work, call
from sfm_kernel.observe.deadlocks import explanation
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.snapshot import snapshot
from sfm_kernel.spawn import worker
from sfm_kernel.spawn.forked import Fork
from sfm_kernel.spawn.job import Job
from sfm_kernel.spawn.process import Process
from sfm_kernel.spawn.report import Result
from sfm_kernel.watching import Watching

LATE = 0.03
"""Seconds between the other ranks' begin and that of a late rank."""

_PROOF, _INTERVAL = 0.8, 0.1
"""Seconds that a deadlock must last before it is reported; seconds between two snapshots."""

_MEMORY = 2 << 30
"""Bytes of data that one process may have: an endless list ends with MemoryError."""

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


def trial(check: Check, attempt: Attempt, size: int, seed: int) -> Trial:
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
        _run(found, check, works)
        found.printed = [_read(path) for path in outputs]
    return found


def _run(found: Trial, check: Check, works: Sequence[Work]) -> None:
    job = _Forks("check", found.size, call, [list(works)])
    if check.sites:
        job.sites = check.sites(found.size)
    watching = Watching(job.world, job.pids, _hangs, proof=_PROOF, every=_INTERVAL)
    try:
        with job:
            try:
                outcomes = job.results(check.seconds, watching)
            except RecvTimeout:
                _judge(found, os.path.join(root(), job.world))
                return
            found.values = [outcome.value for outcome in outcomes]
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
    """Workers that are forks of this process, which has imported what they need."""

    sites: Sequence[str] = ()

    def _start(self, orders: int, report: int) -> Process:
        site = self.sites[len(self.pids())] if self.sites else ""
        others = [order.fileno() for order in self._orders]
        return Fork(lambda: _work(orders, report, others, site))

    def _result(self, rank: int, result: Result | None) -> Any:
        outcome: Outcome = super()._result(rank, result)
        if outcome.error:  # otherwise the others wait for it, and that would be the report
            raise ProcessFailed(rank, outcome.error)
        return outcome

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


def _work(orders: int, report: int, others: Sequence[int], site: str) -> None:
    """Run as ``python -m sfm_kernel.spawn.worker`` does, in a fork."""
    for fd in others:
        os.close(fd)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.dup2(orders, 0)
    os.close(orders)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    sys.stdin = open(null)  # noqa: SIM115 - as long as the process lives
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, most))
    if site:
        os.environ["SFM_SITE"] = site
    worker.main(report)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:  # the rank has not begun
        return ""
