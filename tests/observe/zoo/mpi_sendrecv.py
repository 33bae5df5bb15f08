"""MPI: the two tags of a call that sends and receives at once have been swapped."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.sendrecv("data", dest=1 - comm.rank, sendtag=1, source=1 - comm.rank, recvtag=2)  # here


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in comm.sendrecv(source=1, tag=2) in {here}. \
A's inbox holds 1 message that nearly fits: tag is 1, not 2.
B is in comm.sendrecv(source=0, tag=2) in {here}. \
B's inbox holds 1 message that nearly fits: tag is 1, not 2.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
