"""A server ends before it has answered all requests."""

from sfm_kernel import Endpoint

NAMES = ["server", "A", "B"]


def program(sfm: Endpoint) -> None:
    if sfm.name == "server":
        sfm.recv(src="A", tag="request")
        sfm.send(dest="A", tag="reply")
    else:
        sfm.send(dest="server", tag="request", pages=3)
        sfm.recv(src="server", tag="reply")  # ask


CYCLE: list[str] = []
STUCK = ["B"]
SAID = """
Deadlock: B waits for a message that nobody will send
B waits for recv(src='server', tag='reply') in {ask}. server has come to its end and sends \
nothing. Its message (tag='request', pages=3) lies in server's inbox, unreceived.
A has come to its end.
No message is on its way.
"""
