"""All wait for work from anybody."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    work = sfm.recv(tag="work")  # here
    sfm.send(dest=work.src, tag="work", n=work.n + 1)


CYCLE = ["A", "B", "C"]
SAID = """
Deadlock: A, B and C wait for each other
A waits for recv(tag='work') in {here}.
B waits for recv(tag='work') in {here}.
C waits for recv(tag='work') in {here}.
No message is on its way.
A, B and C wait for each other, so that none of them can ever go on.
"""
