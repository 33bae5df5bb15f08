"""MPI: all give root=0 between two groups, so that nobody is the root."""

import numpy as np

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    between = MPI.COMM_SELF.Create_intercomm(0, MPI.COMM_WORLD, 1 - MPI.COMM_WORLD.rank)  # made
    between.Bcast(np.zeros(2), root=0)  # here


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in between.Bcast(count=2, root=0, comm=an intercommunicator of A with B) and waits for B in \
{here}.
B is in between.Bcast(count=2, root=0, comm=an intercommunicator of B with A) and waits for A in \
{here}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
No process gives root=MPI.ROOT: the root itself gives that, the others of its group \
MPI.PROC_NULL, and those of the other group the root's rank.
An intercommunicator of A with B was made by MPI.COMM_SELF.Create_intercomm() in {made}.
"""
