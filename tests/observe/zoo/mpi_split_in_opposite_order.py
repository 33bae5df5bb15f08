"""MPI: communicators without names, in another order on each; one of them has a name on one."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    from sfm_kernel.mpi import MPI

    world = MPI.COMM_WORLD
    one, two = world.Split(0), world.Dup()
    two.Set_name("copy")
    if world.rank == 0:
        one.allreduce(1)  # first
        two.bcast(None)
    else:
        two.bcast(None)  # other
        one.allreduce(1)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in allreduce of the communicator that Split made in mpi_split_in_opposite_order.py, line 12 \
and waits for B in {first}.
B is in bcast of copy and waits for A in {other}.
No message is on its way.
A and B wait for each other, so that neither can ever go on.
A is in a call of the communicator that Split made in mpi_split_in_opposite_order.py, line 12, \
and B in one of copy: who is in both has to call them in the same order as the others.
"""
