"""One of the members leaves the loop a round too early."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    group = Group(sfm)
    for _ in range(2 if sfm.name == "B" else 3):
        group.barrier()  # here


CYCLE: list[str] = []
STUCK = ["A", "C"]
SAID = """
Deadlock: A and C wait for a collective call that not all will make
A is in barrier() and waits for B in {here}. B has come to its end and does not make that call.
C is in barrier() and waits for B in {here}. B has come to its end and does not make that call.
No message is on its way.
"""
