"""All send before they receive: it works only while messages are buffered."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    sfm.buffering = 0
    place = NAMES.index(str(sfm.name))
    sfm.send(dest=NAMES[(place + 1) % 3], border=[0.5] * 10)  # here
    sfm.recv(src=NAMES[place - 1])


CYCLE = ["A", "B", "C"]
SAID = """
Deadlock: A → B → C → A
A is in send: it waits for 'B' to receive it (buffering=0) in {here}.
B is in send: it waits for 'C' to receive it (buffering=0) in {here}.
C is in send: it waits for 'A' to receive it (buffering=0) in {here}.
No message is on its way.
A, B and C wait for each other, so none of them can ever go on.
"""
