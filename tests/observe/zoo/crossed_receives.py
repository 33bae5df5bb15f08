"""Each receives before it sends."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    other = "B" if sfm.name == "A" else "A"
    sfm.recv(src=other, tag="input")  # here
    sfm.send(dest=other, tag="input", data=1)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A waits for recv(src='B', tag='input') in {here}.
B waits for recv(src='A', tag='input') in {here}.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
