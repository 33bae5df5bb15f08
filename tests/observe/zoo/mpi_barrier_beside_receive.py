"""MPI: a receive is under way while the others wait in a barrier that one member does not make."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    request = comm.Irecv(data, source=(comm.rank + 1) % 3, tag=7)  # begin
    if comm.rank == 2:
        request.Wait()  # wait
    comm.Barrier()  # barrier
    comm.Send(data, dest=(comm.rank - 1) % 3, tag=7)


CYCLE = ["A", "C"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A → C → A
A and B are in comm.Barrier() and wait for C in {barrier}.
C is in request.Wait(source=0, tag=7) in {wait}. \
The request was begun by comm.Irecv(source=0, tag=7) in {begin}.
No message is on its way.
A and C wait for each other, so neither can ever go on.
B waits for them.
"""
