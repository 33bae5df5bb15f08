"""A process sends to itself and waits for the receipt, so it cannot receive the message."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    sfm.buffering = 0
    if sfm.name == "A":
        sfm.send(dest="A", note="remember")  # here
        sfm.recv(src="A")


CYCLE = ["A"]
SAID = """
Deadlock: A waits for itself
A is in send: it waits for 'A' to receive it (buffering=0) in {here}.
B has come to its end.
No message is on its way.
"""
