"""mpi4py, on the MPI whose launcher has started it: ping-pong between ranks 0 and 1.

Run as ``mpiexec -n 2 python -m sfm_kernel.lessons.ranks SOCKET``; see ``measure.launched``. This
module imports mpi4py before any module that loads the compiled core: after that, mpi4py would find
SFM's MPI.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from mpi4py import MPI

from sfm_kernel.lessons.measure.launched import Answer, serve
from sfm_kernel.lessons.pingpong.mechanisms import Calls, Mechanism, from_dict, ping, pong
from sfm_kernel.lessons.pingpong.messages import Attributes

COMM: Any = MPI.COMM_WORLD
RANK: int = COMM.Get_rank()
LIBRARY = " ".join(re.split("[,\n]", MPI.Get_library_version())[0].replace("Version:", "").split())


class Pickled:
    """Lower-case ``send`` and ``recv`` between ranks 0 and 1: any object, pickled."""

    route = LIBRARY

    def calls(self, attributes: Attributes) -> Calls:
        peer, send, recv = 1 - RANK, COMM.send, COMM.recv
        return Calls(
            lambda: send(attributes, dest=peer), lambda: recv(source=peer), from_dict(attributes)
        )


class Buffers:
    """``Send`` and ``Recv`` of memory that both ends have allocated before."""

    route = LIBRARY

    def calls(self, attributes: Attributes) -> Calls:
        peer, data = 1 - RANK, attributes["data"]
        memory = bytearray(len(data)) if isinstance(data, bytes) else data.copy()
        send, recv = COMM.Send, COMM.Recv
        return Calls(
            lambda: send(data, dest=peer), lambda: recv(memory, source=peer), lambda _: memory
        )


MECHANISMS: dict[str, Mechanism] = {"mpi4py pickled": Pickled(), "mpi4py buffers": Buffers()}


def pingpong(mechanism: str, message: str, count: int, warm_up: int) -> Answer | None:
    """The ping-pong of ranks 0 and 1."""
    chosen = MECHANISMS[mechanism]
    if RANK == 1:
        pong(chosen, message, count, warm_up)
        return None
    return {"seconds": ping(chosen, message, count, warm_up), "route": chosen.route}


if __name__ == "__main__":
    serve(sys.argv[1], RANK, {"pingpong": pingpong})
