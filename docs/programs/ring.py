"""Four processes pass numbers around a ring. At the end each asks for a tag that nobody has sent.

``python ring.py run.html`` records the run, also the deadlock, which is meant.
"""

import sys
import time

import sfm_kernel

ROUNDS = 3


def ring(sfm):
    """Add up the numbers of all processes, a step of the ring at a time."""
    right, left = (sfm.rank + 1) % sfm.size, (sfm.rank - 1) % sfm.size
    number = total = sfm.rank
    for step in range(ROUNDS):
        if sfm.rank == 2:
            time.sleep(0.2)  # the others wait for this one
        sfm.send(dest=right, step=step, number=number)
        number = sfm.recv(src=left, step=step).number
        total += number
    sfm.send(dest=right, tag=3, total=total)
    return sfm.recv(src=left, tag=2).total


if __name__ == "__main__":
    try:
        sfm_kernel.run(ring, n=4, detect=True, record=sys.argv[1])
    except sfm_kernel.ProcessFailed as ended:
        if "DeadlockDetected" not in str(ended):
            raise
