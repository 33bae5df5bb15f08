"""Two groups have the same members, which make their calls in opposite orders."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    rows, columns = Group(sfm, name="rows"), Group(sfm, name="columns")
    if sfm.name == "A":
        rows.barrier()  # first
        columns.barrier()
    else:
        columns.barrier()  # other
        rows.barrier()


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in barrier() of 'rows' and waits for B in {first}.
B is in barrier() of 'columns' and waits for A in {other}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
A is in a call of 'rows', and B in one of 'columns': a process in both must call them in the same \
order as the others.
"""
