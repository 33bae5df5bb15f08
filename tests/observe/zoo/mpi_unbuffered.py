"""MPI: all send before they receive, which standard sends may hide."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    from sfm_kernel.mpi import MPI

    mpi.buffering(0)
    comm = MPI.COMM_WORLD
    comm.send({"border": comm.rank}, dest=(comm.rank + 1) % 3)  # here
    comm.recv(source=(comm.rank - 1) % 3)


CYCLE = ["A", "B", "C"]
SAID = """
Deadlock: A → B → C → A
A is in send and waits for B in {here}.
B is in send and waits for C in {here}.
C is in send and waits for A in {here}.
No message is on its way.
A, B and C wait for each other, so that none of them can ever go on.
"""
