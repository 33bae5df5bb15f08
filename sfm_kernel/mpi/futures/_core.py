"""What programs look up in ``mpi4py.futures._core``."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sfm_kernel.mpi.futures.main_program import RUN_NAME as MAIN_RUN_NAME
from sfm_kernel.mpi.futures.tasks import RemoteTraceback

if TYPE_CHECKING:
    from sfm_kernel.mpi.futures import jobs

SharedPool: jobs.SharedPool | None = None
"""What all executors use under ``python -m mpi4py.futures``, else None."""


def comm_split(comm: Any, root: int) -> tuple[Any, Any]:
    """See ``jobs.comm_split``."""
    from sfm_kernel.mpi.futures.jobs import comm_split

    return comm_split(comm, root)


def setup_mpi_threads() -> None:
    """Nothing has to be set up: every thread may call MPI here, at any time."""


_mpi_thread_serialized_lock = threading.Lock()


def _serialized_nolock(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def _serialized_locked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def alone(*args: Any, **kwargs: Any) -> Any:
        with _mpi_thread_serialized_lock:
            return function(*args, **kwargs)

    return alone


serialized: Callable[[Callable[..., Any]], Callable[..., Any]] = _serialized_nolock
"""What programs wrap functions in that call MPI, so that one thread at a time does."""

__all__ = [
    "MAIN_RUN_NAME",
    "RemoteTraceback",
    "SharedPool",
    "comm_split",
    "serialized",
    "setup_mpi_threads",
]
