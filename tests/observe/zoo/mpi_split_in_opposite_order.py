"""MPI: communicators in opposite orders; only one of them has a name, and on one rank only."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    one, two = world.Split(0), world.Dup()  # made
    two.Set_name("copy")
    if world.rank == 0:
        one.allreduce(1)  # first
        two.bcast(None)
    else:
        two.bcast(None)  # other
        one.allreduce(1)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in one.allreduce(op=MPI.SUM, comm=a duplicate of MPI_COMM_WORLD) and waits for B in {first}.
B is in two.bcast(root=0, comm=copy) and waits for A in {other}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
A is in a call of a duplicate of MPI_COMM_WORLD, and B in one of copy: \
a process in both must call them in the same order as the others.
A duplicate of MPI_COMM_WORLD was made by world.Split() in {made}.
"""
