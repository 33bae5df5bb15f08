"""MPI: the leaders of two groups give different tags."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    MPI.COMM_SELF.Create_intercomm(0, world, 1 - world.rank, tag=world.rank)  # create


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in MPI.COMM_SELF.Create_intercomm(local_leader=0, peer_comm=MPI.COMM_WORLD, \
remote_leader=1, tag=0, comm=MPI_COMM_SELF) and waits for B in {create}.
B is in MPI.COMM_SELF.Create_intercomm(local_leader=0, peer_comm=MPI.COMM_WORLD, \
remote_leader=0, tag=1, comm=MPI_COMM_SELF) and waits for A in {create}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
The leaders must give the same tag, but A gives 0 and B 1.
"""
