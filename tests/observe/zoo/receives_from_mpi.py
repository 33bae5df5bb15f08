"""`recv` waits for what MPI has sent."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if sfm.name == "A":
        comm.send(1, dest=1, tag=5)
    else:
        sfm.recv(src="A", tag=5)  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(src='A', tag=5) in {here}. A has come to its end and sends nothing. \
B's inbox holds a message of MPI (tag=5, data=<bytes: 5>): what MPI sends is received by MPI \
alone, and what send() sends by recv().
No message is on its way.
"""
