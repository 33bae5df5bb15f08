"""MPI: one process has left a reduction out, and is in a later call than the others."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank < 2:
        comm.allreduce(comm.rank)  # reduce
    comm.gather(comm.rank, root=0)  # gather
    comm.recv(source=0)  # receive


CYCLE = ["A", "C"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A → C → A
A is in comm.allreduce(op=MPI.SUM) and waits for C in {reduce}. \
C called comm.gather(root=0) in {gather} in place of that.
C is in comm.recv(source=0, tag=MPI.ANY_TAG) in {receive}.
B is in comm.allreduce(op=MPI.SUM) and waits for A in {reduce}. \
C called comm.gather(root=0) in {gather} in place of that.
No message is on its way.
A and C wait for each other, so neither can ever go on.
B waits for them.
"""
