"""The template's only attribute has another name in the message."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="B", colour="red")
    else:
        sfm.recv(color="red")  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(color='red') in {here}. No process is left that could send. \
B's inbox holds 1 message that nearly fits: it has colour, not color.
A has come to its end.
No message is on its way.
"""
