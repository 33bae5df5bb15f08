"""MPI: one process does not make the barrier."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    if sfm.name != "A":
        MPI.COMM_WORLD.Barrier()  # here


CYCLE: list[str] = []
STUCK = ["B", "C"]
SAID = """
Deadlock: B and C wait for a collective call that not all will make
B is in MPI.COMM_WORLD.Barrier() and waits for A in {here}. \
A has come to its end and does not make that call.
C is in MPI.COMM_WORLD.Barrier() and waits for A in {here}. \
A has come to its end and does not make that call.
No message is on its way.
"""
