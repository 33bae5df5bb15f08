"""Two processes wait for three others, which wait for each other."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C", "D", "E"]

FROM = {"A": "B", "B": "C", "C": "A", "D": "A", "E": "D"}


def program(sfm: Endpoint) -> None:
    sfm.recv(src=FROM[str(sfm.name)])  # here


CYCLE = ["A", "B", "C"]
STUCK = ["A", "B", "C", "D", "E"]
SAID = """
Deadlock: A → B → C → A
A waits for recv(src='B') in {here}.
B waits for recv(src='C') in {here}.
C and D wait for recv(src='A') in {here}.
E waits for recv(src='D') in {here}.
No message is on its way.
A, B and C wait for each other, so none of them can ever go on.
D and E wait for them.
"""
