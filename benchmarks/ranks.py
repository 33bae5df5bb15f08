"""mpi4py, on the MPI whose launcher has started it, which benchmarks measure beside SFM.

Run as ``mpiexec -n N python -m benchmarks.ranks SOCKET``, or with SFM's launcher; see
``sfm_kernel.lessons.measure.launched``. mpi4py comes first, as in ``sfm_kernel.lessons.ranks``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import numpy as np
from mpi4py import MPI

from benchmarks import collectives, communicator
from benchmarks.patterns import PATTERNS, WORK, Talk
from sfm_kernel.lessons.measure.launched import Answer, serve
from sfm_kernel.lessons.pingpong.mechanisms import from_dict
from sfm_kernel.lessons.ranks import COMM, LIBRARY, RANK

WORK_TAG, ANSWER_TAG, REST_TAG = range(3)


def pattern(name: str, count: int) -> Answer | None:
    """A pattern of ``patterns`` between all ranks."""
    size = COMM.Get_size()
    talk = Talk(
        rank=RANK,
        size=size,
        to_root=partial(COMM.send, WORK, dest=0, tag=WORK_TAG),
        from_any=partial(COMM.recv, source=MPI.ANY_SOURCE, tag=WORK_TAG),
        answers=[partial(COMM.send, WORK, dest=n, tag=ANSWER_TAG) for n in range(1, size)],
        from_root=partial(COMM.recv, source=0, tag=ANSWER_TAG),
        opened=from_dict(WORK),
    )
    return {"seconds": PATTERNS[name](talk, count), "route": LIBRARY}


def inbox(depth: int, count: int, repeat: int) -> Answer | None:
    """``repeat`` times, rank 0 receives ``count`` messages behind ``depth`` that do not match."""
    if RANK == 1:
        for _ in range(depth):
            COMM.send(WORK, dest=0, tag=REST_TAG)
        for _ in range(repeat):
            for _ in range(count):
                COMM.send(WORK, dest=0, tag=WORK_TAG)
            COMM.Send(b"!", dest=0, tag=ANSWER_TAG)
            COMM.recv(source=0, tag=ANSWER_TAG)
        return None
    seconds = []
    opened = from_dict(WORK)
    for _ in range(repeat):
        # Posted before its message comes: `recv` would search the complete queue again and again.
        COMM.Irecv(bytearray(1), source=1, tag=ANSWER_TAG).Wait()
        started = time.perf_counter()
        for _ in range(count):
            opened(COMM.recv(source=1, tag=WORK_TAG))
        seconds.append((time.perf_counter() - started) / count)
        COMM.send(None, dest=1, tag=ANSWER_TAG)
    for _ in range(depth):
        COMM.recv(source=1, tag=REST_TAG)
    return {"seconds": seconds, "route": LIBRARY}


def blocked(seconds: float) -> Answer | None:
    """The share of a core that rank 0 uses while it waits for a message of rank 1."""
    if RANK == 1:
        COMM.recv(source=0, tag=ANSWER_TAG)
        time.sleep(seconds)
        COMM.send(None, dest=0, tag=WORK_TAG)
        return None
    COMM.send(None, dest=1, tag=ANSWER_TAG)
    before, started = time.process_time(), time.monotonic()
    COMM.recv(source=1, tag=WORK_TAG)
    share = (time.process_time() - before) / (time.monotonic() - started)
    return {"share": share, "route": LIBRARY}


def collective(call: str, count: int) -> Answer | None:
    """A call of ``collectives`` on all ranks."""
    single, single_out = np.ones(1), np.empty(1)
    many = np.ones(collectives.LARGE // 8)
    many_out = np.empty_like(many)
    calls: dict[str, Callable[[], object]] = {
        collectives.BARRIER: COMM.Barrier,
        collectives.SMALL: partial(COMM.Allreduce, single, single_out),
        collectives.OBJECT: partial(COMM.allreduce, 1.5),
        collectives.ARRAY: partial(COMM.Allreduce, many, many_out),
        collectives.BCAST: partial(COMM.Bcast, many, 0),
    }
    return {"seconds": collectives.timed(calls[call], COMM.Barrier, count), "route": LIBRARY}


def measure(call: str, message: str, count: int) -> Answer | None:
    """A call of ``communicator``; it ends when it has ended on all ranks."""
    with ExitStack() as stack:
        once = communicator.made(COMM, call, message, stack)
        for _ in range(min(count, 5)):
            once()
        COMM.Barrier()
        started = time.perf_counter()
        for _ in range(count):
            once()
        COMM.Barrier()
        return {"seconds": (time.perf_counter() - started) / count, "route": LIBRARY}


JOBS: dict[str, Callable[..., Answer | None]] = {
    "pattern": pattern,
    "inbox": inbox,
    "blocked": blocked,
    "collective": collective,
    "measure": measure,
}

if __name__ == "__main__":
    serve(sys.argv[1], RANK, JOBS)
