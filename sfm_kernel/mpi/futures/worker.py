"""A worker: does the tasks of a master."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from sfm_kernel.endpoint import UNBOUNDED, Context, Endpoint
from sfm_kernel.errors import PeerLost, SFMError
from sfm_kernel.message import Message
from sfm_kernel.mpi.futures import main_program
from sfm_kernel.mpi.futures.managing import Task
from sfm_kernel.mpi.futures.tasks import outcome, unpack
from sfm_kernel.mpi.launch import standin
from sfm_kernel.transport.base import Name

_here = threading.local()


def get_comm_workers() -> Any:
    """In a task: the communicator of all workers.

    Raises:
        RuntimeError: this is no worker, or another thread than the one that does the tasks.
    """
    try:
        return _here.workers
    except AttributeError:
        raise RuntimeError(
            "there is no communicator of workers here: call it in a task of an executor"
        ) from None


@contextmanager
def as_worker(comm: Any) -> Iterator[None]:
    """Let ``get_comm_workers`` return this communicator in this thread."""
    _here.workers = comm
    try:
        yield
    finally:
        del _here.workers


def serve(sfm: Endpoint, channel: str, master: Name, comm: Any) -> None:
    """Do the master's tasks until it says stop, or dies.

    Args:
        comm: the communicator of the workers.
    """
    context = Context(sfm, channel, UNBOUNDED, library=True)
    context.doing = "a worker waits for a task"
    rank, size = comm.Get_rank(), comm.Get_size()
    with as_worker(comm):
        while True:
            try:
                message = context.recv(src=master)
                if message.what == "stop":
                    return
                answer = outcome(partial(_do, message), rank, size)
                _answer(context, master, message.pool, answer, rank, size)
                del message, answer  # while it waits, nothing of the last task is kept
            except PeerLost:
                return


def _do(message: Message) -> Any:
    return _DOES[message.what](unpack(message))


def _answer(
    context: Context, master: Name, pool: int, answer: dict[str, Any], rank: int, size: int
) -> None:
    try:
        context.send(dest=master, pool=pool, **answer)
    except PeerLost:
        raise
    except SFMError as error:  # the result is too large

        def fail(error: SFMError = error) -> None:
            raise error

        context.send(dest=master, pool=pool, **outcome(fail, rank, size))


def _set_up(options: dict[str, Any]) -> None:
    if options.get("standin"):
        standin.install()
    sys.path[:] = options.get("sys.path", sys.path)
    sys.path.extend(options.get("path", ()))
    if "wdir" in options:
        os.chdir(options["wdir"])
    os.environ.update(options.get("env", {}))
    if "main program" in options:
        main_program.load(options["main program"], options.get("globals", {}))


def _initialize(given: dict[str, Any]) -> None:
    given["initializer"](*given.get("initargs", ()), **given.get("initkwargs", {}))


def _call(task: Task) -> Any:
    function, arguments, named = task
    return function(*arguments, **named)


_DOES: dict[str, Callable[[Any], Any]] = {
    "setup": _set_up,
    "initialize": _initialize,
    "task": _call,
}

SPAWNED = "--spawned"
"""The argument of a process that ``spawn`` has started."""

CHANNEL, MASTER = "mpi futures", "master"
"""In the world of such processes: the name of the context, and of the process that has tasks."""
