"""MPI: two communicators of one name, which the processes in both call in opposite orders."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C", "D"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    members = (world.rank < 3, world.rank > 0)
    comms = [world.Split(0 if is_one else MPI.UNDEFINED) for is_one in members]
    for comm in reversed(comms) if sfm.name == "C" else comms:
        if comm:
            comm.name = "rows"
            comm.Barrier()  # barrier


CYCLE = ["B", "C"]
STUCK = NAMES
SAID = """
Deadlock: B → C → B
A and B are in comm.Barrier(comm=rows) and wait for C in {barrier}.
C and D are in comm.Barrier(comm=rows) and wait for B in {barrier}.
No message is on its way.
B and C wait for each other, so neither can ever go on.
There are two communicators named rows. B is in a call of that of A, B and C, and C in one of \
that of B, C and D: a process in both must call them in the same order as the others.
A and D wait for them.
"""
