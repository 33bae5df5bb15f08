"""The game of life on a torus, in strips: neighbours exchange their outer rows."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows, columns, generations = 6, 20, 30
above, below = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
start = np.zeros((rows * comm.size, columns), "B")
start[1:4, 1:4] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]  # a glider
start[2, 10:13] = 1  # a blinker


def step(world: np.ndarray) -> np.ndarray:
    """The next generation of all rows but the first and the last."""
    around = sum(
        np.roll(world, shift, axis=1)[1 + row : world.shape[0] - 1 + row]
        for row in (-1, 0, 1)
        for shift in (-1, 0, 1)
        if row or shift
    )
    cells = world[1:-1]
    return ((around == 3) | ((cells == 1) & (around == 2))).astype("B")


strip = np.zeros((rows + 2, columns), "B")
strip[1:-1] = start[comm.rank * rows : (comm.rank + 1) * rows]
for _ in range(generations):
    comm.Sendrecv(strip[1], above, recvbuf=strip[-1], source=below)
    comm.Sendrecv(strip[-2], below, recvbuf=strip[0], source=above)
    strip[1:-1] = step(strip)
world = np.empty_like(start) if comm.rank == 0 else None
comm.Gather(strip[1:-1], world)
if comm.rank == 0:
    alone = start
    for _ in range(generations):
        alone = step(np.vstack([alone[-1:], alone, alone[:1]]))
    print("as on one process:", np.array_equal(world, alone), "alive:", world.sum())
