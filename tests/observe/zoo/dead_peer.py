"""The only process that would have sent has died."""

import subprocess
import sys
import time

from sfm_kernel import Endpoint

NAMES = ["A", "B"]

WORKER = """
import sys, sfm_kernel
sfm = sfm_kernel.join(sys.argv[1], "worker", guest=True)
sfm.send(dest="A", tag="result", part=1)
sfm.recv(tag="never")
"""


def program(sfm: Endpoint) -> None:
    if sfm.name == "A":
        sfm.recv(tag="result")  # first
        sfm.send(dest="B", kill=True)
        sfm.recv(tag="result")  # here
    else:
        with subprocess.Popen([sys.executable, "-c", WORKER, sfm.world]) as worker:
            sfm.wait_for("worker")
            sfm.recv(src="A")
            time.sleep(0.1)
            worker.kill()


CYCLE: list[str] = []
STUCK = ["A"]
SAID = """
Deadlock: A waits for a message that nobody will send
A waits for recv(tag='result') in {here}. No process is left that could send. \
The only message that would have fitted was received before, in {first}, from \
worker.
worker has died.
B has come to its end.
No message is on its way.
"""
