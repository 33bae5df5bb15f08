"""The message that nearly fits lies behind many others."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        for n in range(200):
            sfm.send(dest="B", n=n)
        sfm.send(dest="B", tag="last", n=-1)
    else:
        sfm.recv(tag="end", n=-1)  # here


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(tag='end', n=-1) in {here}. No process is left that could send. \
B's inbox holds 201 messages, and at least 1 nearly fits: tag is 'last', not 'end'.
A has come to its end.
No message is on its way.
"""
