"""The message has arrived, but in another context than the receive's."""

from sfm_kernel import Endpoint

NAMES = ["A", "B"]


def program(sfm: Endpoint) -> None:
    lib = sfm.context("lib")
    if sfm.name == "A":
        lib.send(dest="B", tag=1)
        lib.recv(src="B", tag=2)  # answer
    else:
        sfm.recv(src="A", tag=1)  # question
        sfm.send(dest="A", tag=2)


CYCLE = ["A", "B"]
SAID = """
Deadlock: A → B → A
A waits for recv(src='B', tag=2) of context 'lib' in {answer}.
B waits for recv(src='A', tag=1) in {question}. B's inbox holds 1 message that would fit, but lies \
in context 'lib'.
No message is on its way.
A and B wait for each other, so neither can ever go on.
"""
