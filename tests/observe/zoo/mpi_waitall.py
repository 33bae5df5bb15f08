"""MPI: receives that were begun first do not help where the sends stand behind the wait."""

import numpy as np

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    from sfm_kernel.mpi import MPI

    comm, data = MPI.COMM_WORLD, np.zeros(3)
    other = 1 - comm.rank
    requests = [comm.Irecv(data, source=other, tag=7), comm.isend("early", dest=other, tag=8)]
    MPI.Request.Waitall(requests)  # here
    comm.Send(data, dest=other, tag=7)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in Waitall (Irecv) and waits for a message with src='B', tag=7 in {here}. \
A's inbox holds 1 message that nearly fits: tag is 8, not 7.
B is in Waitall (Irecv) and waits for a message with src='A', tag=7 in {here}. \
B's inbox holds 1 message that nearly fits: tag is 8, not 7.
No message is on its way.
A and B wait for each other, so that neither can ever go on.
"""
