"""The processes give the members of their group in different orders."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    Group(sfm, sorted(NAMES, reverse=sfm.name == "A"), name="all").barrier()  # made


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in Group(['B', 'A']) of 'all' and waits for B in {made}.
B is in Group(['A', 'B']) of 'all' and waits for A in {made}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
A gives the members of 'all' as B and A, and B as A and B: all must give them in the same order.
"""
