"""One process calls a broadcast; the other receives what it believes to be a message."""

from sfm_kernel import Endpoint, Group

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    group = Group(sfm)
    if sfm.name == "A":
        group.bcast("x", root=0)
        sfm.recv(src="B", tag="done")  # done
    else:
        sfm.recv(src="A")  # receive
        sfm.send(dest="A", tag="done")


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A waits for recv(src='B', tag='done') in {done}.
B waits for recv(src='A') in {receive}. A called bcast(root=0, by linear) \
in group_call_and_receive.py, line 11, and B did not.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
