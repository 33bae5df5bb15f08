"""MPI waits for what `send` has sent."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if sfm.name == "A":
        sfm.send(dest="B", tag=5, data=1)
    else:
        comm.recv(source=0, tag=5)  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B is in comm.recv(source=0, tag=5) in {here}. A has come to its end and sends nothing. \
B's inbox holds a message of send() (tag=5, data=1): what MPI sends is received by MPI alone, and \
what send() sends by recv().
No message is on its way.
"""
