"""MPI: each receives before it sends."""

import numpy as np

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    from sfm_kernel.mpi import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    comm.Recv(data, source=1 - comm.rank, tag=7)  # here
    comm.Send(data, dest=1 - comm.rank, tag=7)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A waits for recv(src='B', tag=7) of MPI_COMM_WORLD in {here}.
B waits for recv(src='A', tag=7) of MPI_COMM_WORLD in {here}.
No message is on its way.
A and B wait for each other, so that neither can ever go on.
"""
