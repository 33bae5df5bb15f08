"""MPI: a process leaves a loop of reductions before the others.

mpi4py makes them of its own messages; their operation is known from the line that calls them.
"""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, total = comm.rank, comm.allreduce
    for _ in range(2 if rank == 2 else 3):
        if rank == 0:
            comm.allreduce(rank, op=MPI.MAX if rank == 0 else MPI.SUM)  # reduce
        else:
            total(rank, MPI.MAX)  # alias
    comm.gather(rank, root=2)  # gather


CYCLE = ["A", "C"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A → C → A
A is in comm.allreduce(op=MPI.MAX) and waits for C in {reduce}.
C is in comm.gather(root=2) and waits for A in {gather}.
B is in Intracomm.allreduce(op=MPI.MAX) and waits for A in {alias}.
No message is on its way.
A and C wait for each other, so neither can ever go on.
All processes of MPI_COMM_WORLD make the same collective calls in the same order, but A and B are \
in comm.allreduce and C is in comm.gather.
B waits for them.
"""
