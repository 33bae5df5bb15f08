"""MPI: one process gives another root; the others have gone on when it waits."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.bcast("x", root=1 if comm.rank == 2 else 0)  # bcast
    comm.Barrier()  # barrier


CYCLE = ["B", "C"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: B → C → B
A and B are in comm.Barrier() and wait for C in {barrier}.
C is in comm.bcast(root=1) and waits for B in {bcast}. \
A and B called comm.bcast(root=0) in {bcast} in place of that.
No message is on its way.
B and C wait for each other, so neither can ever go on.
A waits for them.
"""
