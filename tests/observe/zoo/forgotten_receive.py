"""A process sends more than fits into another one's inbox, which waits for the last message."""

from sfm_kernel import Endpoint, encode

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.buffering = 10_000
        for _ in range(3):
            sfm.send(dest="B", tag="work", data=b"x" * 4000)  # send
        sfm.send(dest="B", tag="done")
    else:
        sfm.recv(tag="done")  # receive


NBYTES = len(encode(dest="B", src="A", tag="work", data=b"x" * 4000))
CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in send: it waits for room at 'B' for {NBYTES} bytes in {send}. \
B has not received all that A sent before.
B waits for recv(tag='done') in {receive}. B's inbox holds 2 messages that nearly fit: \
tag is 'work', not 'done'.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
