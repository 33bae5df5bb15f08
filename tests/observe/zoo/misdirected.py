"""The message went to another process."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="C", tag="input", data=[1, 2])  # meant for B
    elif sfm.name == "B":
        sfm.recv(src="A", tag="input")  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(src='A', tag='input') in {here}. A has come to its end and sends nothing.
C has come to its end.
No message is on its way.
A message that would fit B's receive lies in C's inbox: A sent it there.
"""
