"""The sender has misspelt the attribute's name."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="B", tagg=1, data=[1, 2])
    else:
        sfm.recv(src="A", tag=1)  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(src='A', tag=1) in {here}. A has come to its end and sends nothing. \
B's inbox holds 1 message that nearly fits: it has tagg, not tag.
No message is on its way.
"""
