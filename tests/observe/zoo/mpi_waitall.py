"""MPI: receives that were begun first do not help if the sends come after the wait."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    other = 1 - comm.rank
    requests = [comm.Irecv(data, source=other, tag=7), comm.isend("early", dest=other, tag=8)]
    MPI.Request.Waitall(requests)  # here
    comm.Send(data, dest=other, tag=7)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in MPI.Request.Waitall(count=2) and waits for B in {here}.
B is in MPI.Request.Waitall(count=2) and waits for A in {here}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
