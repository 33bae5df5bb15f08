"""MPI: each process has its own part of a window locked, and wants the other's."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    board = MPI.Win.Allocate(8, comm=comm)
    board.name = "board"
    board.Lock(comm.rank)
    comm.Barrier()
    board.Lock(1 - comm.rank)  # lock


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in board.Lock(rank=1, win=board) and waits for B in {lock}.
B is in board.Lock(rank=0, win=board) and waits for A in {lock}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
