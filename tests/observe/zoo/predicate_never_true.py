"""A predicate that no message can satisfy."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        for n in range(3):
            sfm.send(dest="B", n=n)
    else:
        sfm.recv(n=is_large)  # here


def is_large(n: int) -> bool:
    return n > 5


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(n=<is_large>) in {here}. No process is left that could send. \
B's inbox holds 3 messages that nearly fit: n is 0, which <is_large> does not accept; n is 1, \
which <is_large> does not accept; n is 2, which <is_large> does not accept.
A has come to its end.
No message is on its way.
"""
