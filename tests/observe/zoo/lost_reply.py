"""A server answers all requests but one."""

from sfm_kernel import Endpoint

NAMES = ["server", "A", "B", "C"]
NUMBERS = {"A": 4, "B": 9, "C": 0}


def program(sfm: Endpoint) -> None:
    if sfm.name == "server":
        while True:
            request = sfm.recv(tag="request")  # serve
            if request.n > 0:  # 0 was forgotten
                sfm.send(dest=request.src, tag="reply", root=request.n**0.5)
    else:
        sfm.send(dest="server", tag="request", n=NUMBERS[str(sfm.name)])
        sfm.recv(src="server", tag="reply")  # ask


CYCLE: list[str] = []
STUCK = ["server", "C"]
SAID = """
Deadlock: server and C wait for a message that nobody will send
server waits for recv(tag='request') in {serve}. No process is left that could send. \
server has received 3 of 3 messages that would have fitted, from A, B and C, the last one in \
{serve}.
C waits for recv(src='server', tag='reply') in {ask}.
A and B have come to their end.
No message is on its way.
"""
