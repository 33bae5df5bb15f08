"""Two groups of one name: the processes that are in both call them in opposite orders."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B", "C", "D"]


def program(sfm: Endpoint) -> None:
    first = Group(sfm, NAMES[:3], name="rows") if sfm.name != "D" else None
    second = Group(sfm, NAMES[1:], name="rows") if sfm.name != "A" else None
    for group in (second, first) if sfm.name == "C" else (first, second):
        if group:
            group.barrier()  # barrier


CYCLE = ["B", "C"]
STUCK = NAMES
SAID = """
Deadlock: B → C → B
A and B are in barrier() of 'rows' and wait for C in {barrier}.
C and D are in barrier() of 'rows' and wait for B in {barrier}.
No message is on its way.
B and C wait for each other, so neither can ever go on.
There are two groups named 'rows'. B is in a call of that of A, B and C, and C in one of that of \
B, C and D: a process in both must call them in the same order as the others.
A and D wait for them.
"""
