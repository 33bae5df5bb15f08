"""A process receives more results than there are others to send them."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    if sfm.name != "A":
        sfm.send(dest="A", tag="result", value=sfm.rank)
        return
    for _ in range(sfm.size):  # one of them is A itself
        sfm.recv(tag="result")  # here


CYCLE: list[str] = []
STUCK = ["A"]
SAID = """
Deadlock: A waits for a message that nobody will send
A waits for recv(tag='result') in {here}. No process is left that could send. A has received 2 of \
2 messages that would have fitted, from B and C, the last one in {here}.
B and C have come to their end.
No message is on its way.
"""
