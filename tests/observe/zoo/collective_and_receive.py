"""One process is in a barrier, the other waits for a message that is sent after it."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    group = Group(sfm)
    if sfm.name == "C":
        sfm.recv(src="A", tag="start")  # receive
        group.barrier()
    else:
        group.barrier()  # barrier
        sfm.send(dest="C", tag="start")


CYCLE = ["A", "C"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A → C → A
A and B are in barrier() and wait for C in {barrier}.
C waits for recv(src='A', tag='start') in {receive}.
No message is on its way.
A and C wait for each other, so neither can ever go on.
B waits for them.
"""
