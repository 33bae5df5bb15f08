"""The message has arrived, but with another tag than the receive's."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="B", tag=3, data=[1, 2])
        sfm.recv(src="B", tag=1)  # answer
    else:
        total = sum(sfm.recv(src="A", tag=2).data)  # question
        sfm.send(dest="A", tag=1, total=total)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A waits for recv(src='B', tag=1) in {answer}.
B waits for recv(src='A', tag=2) in {question}. B's inbox holds 1 message that nearly fits: \
tag is 3, not 2.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
