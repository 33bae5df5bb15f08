"""A receive from any sender takes the message that the next receive needs."""

from sfm_kernel import Endpoint

NAMES = ["master", "A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="master", tag="data", value=1)
    elif sfm.name == "B":
        sfm.recv(src="master")  # so that it is the slower one
        sfm.send(dest="master", tag="data", value=2)
    else:
        sfm.recv(tag="data")  # first
        sfm.send(dest="B", go=True)
        sfm.recv(src="A", tag="data")  # here


CYCLE: list[str] = []
STUCK = ["master"]
SAID = """
Deadlock: master waits for a message that nobody will send
master waits for recv(src='A', tag='data') in {here}. A has come to its end and sends nothing. \
master's inbox holds 1 message that nearly fits: src is 'B', not 'A'. The only message that would \
have fitted was received before, in {first}, from A.
B has come to its end.
No message is on its way.
"""
