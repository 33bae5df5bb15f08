"""The limit of time of a receive is given by name, which makes it an attribute of the template."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="B", colour="red")
    else:
        sfm.recv(colour="red", timeout=2)  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(colour='red', timeout=2) in {here}. No process is left that could send. \
B's inbox holds 1 message that nearly fits: it has no timeout. \
timeout=2 is an attribute that the message must have: a limit of time comes first.
A has come to its end.
No message is on its way.
"""
