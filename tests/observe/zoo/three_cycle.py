"""Each waits for the one before it, and nobody begins."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    place = NAMES.index(str(sfm.name))
    before, after = NAMES[place - 1], NAMES[(place + 1) % 3]
    token = sfm.recv(src=before, tag="token")  # here
    sfm.send(dest=after, tag="token", hops=token.hops + 1)


CYCLE = ["A", "C", "B"]
SAID = """
Deadlock: A → C → B → A
A waits for recv(src='C', tag='token') in {here}.
C waits for recv(src='B', tag='token') in {here}.
B waits for recv(src='A', tag='token') in {here}.
No message is on its way.
A, C and B wait for each other, so none of them can ever go on.
"""
