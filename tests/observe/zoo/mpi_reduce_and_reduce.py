"""MPI: one process reduces objects where the other reduces arrays, and goes on."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    comm.reduce(1)
    if comm.rank == 0:
        comm.reduce(1)  # objects
    else:
        comm.Reduce(data, None)  # arrays
    comm.Barrier()  # barrier


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in comm.reduce(op=MPI.SUM, root=0) and waits for B in {objects}. \
B called comm.Reduce(op=MPI.SUM, root=0) in {arrays}, and A did not.
B is in comm.Barrier() and waits for A in {barrier}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
All processes of MPI_COMM_WORLD make the same collective calls in the same order, but A is in \
comm.reduce and B is in comm.Barrier.
"""
