"""MPI: each receives before it sends."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    comm.Recv(data, source=1 - comm.rank, tag=7)  # here
    comm.Send(data, dest=1 - comm.rank, tag=7)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in comm.Recv(source=1, tag=7) in {here}.
B is in comm.Recv(source=0, tag=7) in {here}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
