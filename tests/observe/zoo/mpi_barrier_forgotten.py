"""MPI: only the others come to the barrier."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    from sfm_kernel.mpi import MPI

    if sfm.name != "A":
        MPI.COMM_WORLD.Barrier()  # here


CYCLE: list[str] = []
STUCK = ["B", "C"]
SAID = """
Deadlock: B and C wait for a collective call that not all will come to
B is in Barrier of MPI_COMM_WORLD and waits for A in {here}. \
A has come to its end and does not make that call.
C is in Barrier of MPI_COMM_WORLD and waits for A in {here}. \
A has come to its end and does not make that call.
No message is on its way.
"""
