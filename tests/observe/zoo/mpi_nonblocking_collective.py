"""MPI: a barrier that was begun first does not help if a process waits for it before it sends."""

from sfm_kernel import Endpoint, mpi

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    mpi.use(sfm)
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        comm.recv(source=1)  # receive
        comm.Ibarrier().Wait()
    else:
        comm.Ibarrier().Wait()  # wait
        if comm.rank == 1:
            comm.send("late", dest=0)


CYCLE = ["A", "B"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A → B → A
A is in comm.recv(source=1, tag=MPI.ANY_TAG) in {receive}. \
B and C called comm.Ibarrier() in {wait}, and A did not.
B and C are in comm.Ibarrier().Wait() and wait for A in {wait}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
C waits for them.
"""
