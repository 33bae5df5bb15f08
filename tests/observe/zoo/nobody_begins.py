"""All processes wait for work from any sender."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    work = sfm.recv(tag="work")  # here
    sfm.send(dest=work.src, tag="work", n=work.n + 1)


CYCLE: list[str] = []
STUCK = ["A", "B", "C"]
SAID = """
Deadlock: A, B and C wait for a message that nobody will send
A, B and C wait for recv(tag='work') in {here}. No process is left that could send.
No message is on its way.
"""
