"""MPI: one process sends synchronously a message that the other would receive after a barrier."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    comm.barrier()
    early = comm.irecv(source=1 - comm.rank, tag=1)
    if comm.rank == 0:
        comm.ssend("data", dest=1)  # send
        comm.barrier()
    else:
        comm.barrier()  # barrier
        comm.recv(source=0)
    early.cancel()


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in comm.ssend(dest=1, tag=0) and waits for B in {send}.
B is in comm.barrier() and waits for A in {barrier}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
