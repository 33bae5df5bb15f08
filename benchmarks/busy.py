"""Messages beside processes that compute: the same machine quiet, a little busy, and full."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from benchmarks import peers
from benchmarks.verdict import Pair, verdict
from sfm_kernel.lessons import pingpong
from sfm_kernel.lessons.measure.rows import Row, grouped
from sfm_kernel.lessons.pingpong.messages import THREE

SFM, PICKLED = "SFM w/Q", "mpi4py pickled"
MESSAGES = (THREE, "bytes 64 kB")
PROCESSES = (2, 4, 8)
LIMITS = {(THREE, 0): 0.5, (THREE, 1): 0.7}
"""Message, number of processes that compute -> the largest ratio to mpi4py's time."""

COMPUTING = "import os\nowner = os.getppid()\nwhile os.getppid() == owner: sum(range(100_000))"
"""Computes until its owner has ended, if that did not end it before."""


@contextmanager
def computing(processes: int) -> Iterator[None]:
    """So many processes compute meanwhile, and do nothing else."""
    with ExitStack() as stack:
        for _ in range(processes):
            process = subprocess.Popen([sys.executable, "-S", "-c", COMPUTING])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


def rows(
    *,
    busy: Sequence[int],
    processes: Sequence[int] = PROCESSES,
    mpi: bool = True,
    repeat: int = 5,
    seconds: float = 0.1,
) -> Iterator[Row]:
    """Measure messages of two processes, and patterns of more, beside ``busy`` others.

    The rows are those of ``pingpong`` and of ``peers``, with a column ``busy``.

    Raises:
        ValueError: a number is out of range; nothing was started.
    """
    if any(number < 0 for number in busy):
        raise ValueError(f"busy {list(busy)}: at least 0")
    for number in busy:
        with computing(number):
            mechanisms = (SFM, PICKLED) if mpi else (SFM,)
            messages = pingpong.rows(
                messages=MESSAGES, mechanisms=mechanisms, repeat=repeat, seconds=seconds
            )
            for row in messages:
                yield {"busy": number} | row
            for n in processes:
                for row in peers.patterns(n, mpi, repeat, seconds):
                    yield {"busy": number} | row


def summary(measured: Sequence[Row]) -> list[Row]:
    """A row for each message and pattern, and number of processes that compute."""
    found = []
    for (busy,), group in grouped(measured, ("busy",)).items():
        beside = f"beside {busy} that compute"
        messages = pingpong.summary([row for row in group if "message" in row])
        for message in MESSAGES:
            of_two = [("2 processes", row) for row in messages if row["message"] == message]
            pairs = _pairs(of_two, "latency_us", SFM, PICKLED)
            limit = LIMITS.get((message, busy))
            found.append(verdict(f"{message}, {beside}", limit, PICKLED, pairs))
        patterns = peers.summary([row for row in group if "what" in row])
        for (what,), listed in grouped(patterns, ("what",)).items():
            of_many = [(f"{row['processes']} processes", row) for row in listed]
            pairs = _pairs(of_many, "us", peers.SFM, peers.MPI)
            found.append(verdict(f"{what}, {beside}", None, peers.MPI, pairs))
    return found


def _pairs(cases: Sequence[tuple[str, Row]], value: str, ours: str, theirs: str) -> list[Pair]:
    """The cases that both mechanisms have; ``value`` is the column of the medians."""
    times = {(case, row["mechanism"]): (row[value], row["fastest_us"]) for case, row in cases}
    found = []
    for case in dict.fromkeys(case for case, _ in cases):
        if (case, ours) in times and (case, theirs) in times:
            (measured, fastest), (beside, fastest_beside) = times[case, ours], times[case, theirs]
            found.append(Pair(case, measured, beside, fastest, fastest_beside))
    return found
