"""What is measured of a communicator, the real mpi4py's or SFM's: both have the same calls."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sfm_kernel.bench import collectives
from sfm_kernel.bench.mechanisms import Way, from_dict
from sfm_kernel.bench.messages import Attributes


class Pickled:
    """Lower-case ``send`` and ``recv`` between ranks 0 and 1: any object, pickled."""

    def __init__(self, comm: Any, route: str) -> None:
        self.comm, self.route = comm, route

    def way(self, attributes: Attributes) -> Way:
        peer, send, recv = 1 - self.comm.rank, self.comm.send, self.comm.recv
        return Way(
            lambda: send(attributes, dest=peer), lambda: recv(source=peer), from_dict(attributes)
        )


class Buffers:
    """``Send`` and ``Recv`` of memory that both ends have made before."""

    def __init__(self, comm: Any, route: str) -> None:
        self.comm, self.route = comm, route

    def way(self, attributes: Attributes) -> Way:
        peer, data = 1 - self.comm.rank, attributes["data"]
        memory = bytearray(len(data)) if isinstance(data, bytes) else data.copy()
        send, recv = self.comm.Send, self.comm.Recv
        return Way(
            lambda: send(data, dest=peer), lambda: recv(memory, source=peer), lambda _: memory
        )


def calls_of(comm: Any) -> dict[str, Callable[[], object]]:
    """The calls of ``bench.collectives``, as calls without arguments."""
    import numpy as np

    one, one_out = np.ones(1), np.empty(1)
    many = np.ones(collectives.LARGE // 8)
    many_out = np.empty_like(many)
    return {
        collectives.BARRIER: comm.Barrier,
        collectives.SMALL: partial(comm.Allreduce, one, one_out),
        collectives.OBJECT: partial(comm.allreduce, 1.5),
        collectives.ARRAY: partial(comm.Allreduce, many, many_out),
        collectives.BCAST: partial(comm.Bcast, many, 0),
    }
