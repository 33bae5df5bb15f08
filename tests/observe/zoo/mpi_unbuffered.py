"""MPI: all send before they receive, which standard sends may hide."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    mpi.buffering(0)
    comm = MPI.COMM_WORLD
    comm.send({"border": comm.rank}, dest=(comm.rank + 1) % 3)  # here
    comm.recv(source=(comm.rank - 1) % 3)


CYCLE = ["A", "B", "C"]
SAID = """
Deadlock: A → B → C → A
A is in comm.send(dest=1, tag=0) and waits for B in {here}.
B is in comm.send(dest=2, tag=0) and waits for C in {here}.
C is in comm.send(dest=0, tag=0) and waits for A in {here}.
No message is on its way.
A, B and C wait for each other, so none of them can ever go on.
"""
