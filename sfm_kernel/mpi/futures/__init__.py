"""Calls that other processes do: the interface of ``concurrent.futures``, and of mpi4py.futures.

pool          the executors
managing      an executor's queue, and the thread that empties it
crew          worker processes, as the master sees them
worker        a worker
spawn         workers that are started on this machine; server: one of them
jobs          workers that are ranks of the job
threads       workers that are threads
tasks         how calls and results travel
main_program  the main program, imported by workers
mapping       map and starmap
util, aplus   futures that are made of others
"""

from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    TimeoutError,
    as_completed,
    wait,
)

from sfm_kernel.mpi.futures.pool import (
    MPICommExecutor,
    MPIPoolExecutor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from sfm_kernel.mpi.futures.util import collect, compose
from sfm_kernel.mpi.futures.worker import get_comm_workers

__all__ = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "BrokenExecutor",
    "CancelledError",
    "Executor",
    "Future",
    "InvalidStateError",
    "MPICommExecutor",
    "MPIPoolExecutor",
    "ProcessPoolExecutor",
    "ThreadPoolExecutor",
    "TimeoutError",
    "as_completed",
    "collect",
    "compose",
    "get_comm_workers",
    "wait",
]
