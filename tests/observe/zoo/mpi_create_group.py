"""MPI: two processes make a communicator alone, and give different tags."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.Create_group(world.group, tag=world.rank)  # create
    world.Barrier()  # barrier


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in world.Barrier() and waits for B in {barrier}.
B is in world.Create_group(tag=1) and waits for A in {create}. \
A called world.Create_group(tag=0) in {create} in place of that.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
