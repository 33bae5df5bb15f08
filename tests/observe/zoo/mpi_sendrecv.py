"""MPI: the two tags of a call that sends and receives at once have been swapped."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    from sfm_kernel.mpi import MPI

    comm = MPI.COMM_WORLD
    comm.sendrecv("data", dest=1 - comm.rank, sendtag=1, source=1 - comm.rank, recvtag=2)  # here


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in sendrecv and waits for recv(src='B', tag=2) of MPI_COMM_WORLD in {here}. \
A's inbox holds 1 message that nearly fits: tag is 1, not 2.
B is in sendrecv and waits for recv(src='A', tag=2) of MPI_COMM_WORLD in {here}. \
B's inbox holds 1 message that nearly fits: tag is 1, not 2.
No message is on its way.
A and B wait for each other, so that neither can ever go on.
"""
