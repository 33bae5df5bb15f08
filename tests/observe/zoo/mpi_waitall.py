"""MPI: receives that were begun first do not help if the sends come after the wait."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    other = 1 - comm.rank
    receive = comm.Irecv(data, source=other, tag=7)  # two
    requests = [receive, comm.isend("early", dest=other, tag=8)]
    MPI.Request.Waitall(requests)  # here
    comm.Send(data, dest=other, tag=7)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in MPI.Request.Waitall(count=2) and waits for B in {here}. \
1 of 2 requests is open: comm.Irecv(source=1, tag=7) in {two}. \
For comm.Irecv(source=1, tag=7), A's inbox holds 1 message that nearly fits: tag is 8, not 7.
B is in MPI.Request.Waitall(count=2) and waits for A in {here}. \
1 of 2 requests is open: comm.Irecv(source=0, tag=7) in {two}. \
For comm.Irecv(source=0, tag=7), B's inbox holds 1 message that nearly fits: tag is 8, not 7.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
