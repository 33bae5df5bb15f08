"""Letters of short names are swapped, or capitals."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="B", tga=1)
        sfm.send(dest="C", Tag=1)
    else:
        sfm.recv(tag=1)  # here


CYCLE: list[str] = []
STUCK = ["B", "C"]
SAID = """
Deadlock: B and C wait for a message that nobody will send
B waits for recv(tag=1) in {here}. No process is left that could send. B's inbox holds 1 message \
that nearly fits: it has tga, not tag.
C waits for recv(tag=1) in {here}. No process is left that could send. C's inbox holds 1 message \
that nearly fits: it has Tag, not tag.
A has come to its end.
No message is on its way.
"""
