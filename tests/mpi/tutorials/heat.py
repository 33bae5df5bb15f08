"""Heat in a plate, on a grid of processes that exchange the edges of their parts.

Rows are contiguous, columns are not: a vector datatype describes them.
"""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
dims = MPI.Compute_dims(comm.size, 2)
grid = comm.Create_cart(dims, periods=[False, False], reorder=True)
up, down = grid.Shift(0, 1)
left, right = grid.Shift(1, 1)
cells, steps = 6, 50

plate = np.zeros((cells + 2, cells + 2))
row, column = grid.coords
if row == 0:
    plate[0, :] = 100.0  # the upper side is hot
column_type = MPI.DOUBLE.Create_vector(cells, 1, cells + 2).Commit()


def edge(array: np.ndarray) -> list:
    """A column of the plate without its corners."""
    return [array, 1, column_type]


for _ in range(steps):
    grid.Sendrecv(plate[1, 1:-1], up, recvbuf=plate[-1, 1:-1], source=down)
    grid.Sendrecv(plate[-2, 1:-1], down, recvbuf=plate[0, 1:-1], source=up)
    inner = plate.reshape(-1)[cells + 2 :]
    grid.Sendrecv(edge(inner[1:]), left, recvbuf=edge(inner[cells + 1 :]), source=right)
    grid.Sendrecv(edge(inner[cells:]), right, recvbuf=edge(inner[0:]), source=left)
    plate[1:-1, 1:-1] = 0.25 * (
        plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
    )
column_type.Free()

parts = grid.gather((grid.coords, plate[1:-1, 1:-1]))
if grid.rank == 0:
    picture = np.zeros((dims[0] * cells, dims[1] * cells))
    for (r, c), block in parts:
        picture[r * cells : (r + 1) * cells, c * cells : (c + 1) * cells] = block

    expected = np.zeros((picture.shape[0] + 2, picture.shape[1] + 2))
    expected[0, :] = 100.0
    for _ in range(steps):
        expected[1:-1, 1:-1] = 0.25 * (
            expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
        )
    same = np.allclose(picture, expected[1:-1, 1:-1])
    print(f"a grid of {dims[0]} x {dims[1]}: as on one process: {same}")
