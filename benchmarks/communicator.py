"""The measured calls of MPI; every library has them through mpi4py."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from sfm_kernel.lessons.pingpong.messages import SIZES, THREE, attributes_of

BUFFERS, OBJECTS, BOTH_WAYS = "Send/Recv", "send/recv", "16 Isend/Irecv both ways"
WINDOW = "64 Isend/Irecv"
BARRIER, ALLREDUCE = "Barrier", "Allreduce"
COLLECTIVES = ("Bcast", "Gather", "Scatter", "Allgather", "Alltoall")
ONE_SIDED = ("Put", "Get")

NBYTES = SIZES | {"4 kB": 4 << 10}
OF_TWO = {
    BUFFERS: ("8 B", "1 kB", "64 kB", "1 MB", "16 MB"),
    OBJECTS: (THREE, "array 1 kB"),
    WINDOW: ("8 B", "4 kB", "1 MB"),
    BOTH_WAYS: ("1 MB",),
}
OF_ANY = {BARRIER: ("",), ALLREDUCE: ("8 B",)}
OF_FEW = dict.fromkeys((*COLLECTIVES, *ONE_SIDED), ("8 B", "64 kB", "1 MB"))
CALLS = OF_TWO | OF_ANY | OF_FEW
"""Call -> its messages: between two processes only; with any number; with 4 at most."""


def cells(processes: int) -> list[tuple[str, str]]:
    """The calls, with their messages, for a number of processes."""
    known = OF_ANY | (OF_FEW if processes <= 4 else {}) | (OF_TWO if processes == 2 else {})
    return [(call, message) for call in CALLS if call in known for message in CALLS[call]]


def made(comm: Any, call: str, message: str, stack: ExitStack) -> Callable[[], object]:
    """This rank's call, without arguments; every rank calls it the same number of times.

    ``Send/Recv`` and ``send/recv`` are round trips; an empty message answers many messages in one
    direction. This function allocates buffers; windows live as long as the stack.
    """
    import numpy as np
    from mpi4py import MPI

    def memory(times: int = 1) -> Any:
        return np.ones(NBYTES[message] * times, np.uint8)

    rank, size = comm.rank, comm.size
    after = (rank + 1) % size
    if call == BUFFERS:
        send, receive = partial(comm.Send, memory(), after), partial(comm.Recv, memory(), after)
        return _both(send, receive, swapped=rank == 1)
    if call == OBJECTS:
        send = partial(comm.send, attributes_of(message), after)
        return _both(send, partial(comm.recv, source=after), swapped=rank == 1)
    if call == WINDOW:
        many = [memory() for _ in range(64)]
        begin, answer = (comm.Isend, comm.Recv) if rank == 0 else (comm.Irecv, comm.Send)
        wait, empty = MPI.Request.Waitall, bytearray()
        return lambda: (wait([begin(buffer, after) for buffer in many]), answer(empty, after))
    if call == BOTH_WAYS:
        pairs = [(comm.Irecv, memory()) for _ in range(16)]
        pairs += [(comm.Isend, memory()) for _ in range(16)]
        return lambda: MPI.Request.Waitall([begin(buffer, after) for begin, buffer in pairs])
    if call == ALLREDUCE:
        return partial(comm.Allreduce, np.ones(1), np.empty(1))
    if call in ONE_SIDED:
        window = MPI.Win.Allocate(NBYTES[message], comm=comm)
        stack.callback(window.Free)
        window.Lock_all()
        stack.callback(window.Unlock_all)
        move = partial(getattr(window, call), memory(), after)
        return _both(move, partial(window.Flush, after))
    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        BARRIER: lambda: (),
        "Bcast": lambda: (memory(), 0),
        "Gather": lambda: (memory(), memory(size), 0),
        "Scatter": lambda: (memory(size), memory(), 0),
        "Allgather": lambda: (memory(), memory(size)),
        "Alltoall": lambda: (memory(size), memory(size)),
    }
    return partial(getattr(comm, call), *arguments[call]())


def _both(
    first: Callable[[], Any], then: Callable[[], Any], swapped: bool = False
) -> Callable[[], object]:
    return (lambda: (then(), first())) if swapped else (lambda: (first(), then()))
