"""Values of other types, which observers do not see: bytes for a text, and a tuple for a list."""

from sfm_kernel import Endpoint

NAMES = ["A", "B", "C"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.send(dest="B", command=b"go")
        sfm.send(dest="C", at=(1, 2), n=1)
    elif sfm.name == "B":
        sfm.recv(command="go")  # text
    else:
        sfm.recv(at=[1, 2], n=1)  # list


CYCLE: list[str] = []
STUCK = ["B", "C"]
SAID = """
Deadlock: B and C wait for a message that nobody will send
B waits for recv(command='go') in {text}. No process is left that could send. B's inbox holds \
1 message that nearly fits: command is <bytes: 2>, not 'go'.
C waits for recv(at=[1, 2], n=1) in {list}. No process is left that could send. C's inbox holds \
1 message that nearly fits: at is <object: 18 bytes>, not [1, 2].
A has come to its end.
No message is on its way.
"""
