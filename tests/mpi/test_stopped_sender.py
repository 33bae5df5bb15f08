"""The sender of a large message stands still while both processes copy it, with a part that only it
can copy: the receiver's call ends all the same, and nothing is written afterwards where it was."""

from __future__ import annotations

import pytest

from tests.mpi.launching import PATIENCE, run

PROGRAM = """
import os, random, signal, threading, time
import numpy as np
from mpi4py import MPI
comm, rank = MPI.COMM_WORLD, MPI.COMM_WORLD.rank
sender, size = comm.bcast(os.getpid()), 1 << 26

def stop(received):
    \"\"\"Stop the sender, which is nearly always within a part: if it is, the receiver waits.\"\"\"
    while not into[0]: time.sleep(random.random() / 500)
    os.kill(sender, signal.SIGSTOP)
    if not received.wait(0.5): END

def receive():
    while True:
        received, into[0] = threading.Event(), 0
        thread = threading.Thread(target=stop, args=(received,))
        comm.send(True, 0, 1)
        thread.start()
        try:
            comm.Recv(into, 0)
        finally:
            received.set()
            thread.join()
        os.kill(sender, signal.SIGCONT)

if rank == 0:
    data = np.ones(size, np.uint8)
    while comm.recv(source=1, tag=1): comm.Send(data, 1)
else:
    into, other = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    try:
        receive()
    except KeyboardInterrupt:
        into[:] = 0
        os.kill(sender, signal.SIGCONT)
        comm.send(True, 0, 1)  # the next message comes
        comm.Recv(other, 0)
        print("interrupted", into.any(), other.all())
        comm.send(False, 0, 1)
comm.Barrier()
"""


@pytest.mark.parametrize(
    ("end", "status", "says"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", 0, "interrupted False True\n"),
        ("os.kill(sender, signal.SIGKILL)", 137, "rank 0 was killed by SIGKILL"),
        ("comm.Abort(7)", 7, ""),
    ],
    ids=["interrupt", "kill", "abort"],
)
def test_a_receive_ends_while_its_sender_stands_still(end: str, status: int, says: str) -> None:
    words = ["-n", "2", "--timeout", "90", "-c", PROGRAM.replace("END", end)]
    done = run(*words, timeout=PATIENCE)
    assert done.returncode == status and says in done.stdout + done.stderr, done.stderr
