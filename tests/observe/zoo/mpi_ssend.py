"""MPI: both send with a call that returns when a receive has matched."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    comm.Ssend(data, dest=1 - comm.rank)  # here
    comm.Recv(data, source=1 - comm.rank)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in comm.Ssend(dest=1, tag=0, count=3) and waits for B in {here}.
B is in comm.Ssend(dest=0, tag=0, count=3) and waits for A in {here}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
