"""MPI: persistent requests are named by the calls that have made them.

A has not made all partitions ready, and C has not made the barrier's request.
"""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(4)
    if comm.rank < 2:
        request = comm.Barrier_init()  # barrier
        request.Start()
    if comm.rank == 0:
        request = comm.Psend_init(data, 4, dest=2, tag=3)  # parts
        request.Start()
        request.Pready_range(0, 2)
    if comm.rank == 2:
        comm.Recv(data, source=1, tag=3)  # receive
    request.Wait()  # wait


CYCLE = ["B", "C"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: B → C → B
B is in request.Wait() and waits for C in {wait}. \
The request was made by comm.Barrier_init() in {barrier}.
C is in comm.Recv(source=1, tag=3) in {receive}. \
B called comm.Barrier_init() in {barrier}, and C did not.
A is in request.Wait() and waits for C in {wait}. \
The request was made by comm.Psend_init(dest=2, tag=3, not_ready=[3]) in {parts}.
No message is on its way.
B and C wait for each other, so neither can ever go on.
A waits for them.
"""
