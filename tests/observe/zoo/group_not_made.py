"""Making a group is a collective call, too: one of the members waits for a message instead."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "B":
        sfm.recv(src="A")  # receive
    Group(sfm)  # group


CYCLE = ["A", "B"]
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A → B → A
A is in Group(['A', 'B', 'C']) and waits for B in {group}.
B waits for recv(src='A') in {receive}.
C is in Group(['A', 'B', 'C']) and waits for A in {group}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
C waits for them.
"""
