"""A process calls an object of another one, which receives instead of serving."""

from sfm_kernel import Endpoint, remote

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        remote.connect(sfm, "B").shelf  # noqa: B018  # call
    else:
        remote.export("shelf", [])
        sfm.recv(src="A")  # receive


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A is in shelf on B and waits for B in {call}.
B waits for recv(src='A') in {receive}. A calls what B offers, and B answers only in \
serving.serve().
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
