"""A matrix times a vector, both in blocks of rows: the vector is put together by Allgather."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows = 4
size = rows * comm.size
first = rows * comm.rank
A = np.fromfunction(lambda i, j: 1.0 / (i + first + j + 1), (rows, size))
x = np.arange(first, first + rows, dtype="d")

all_x = np.zeros(size)
comm.Allgather([x, MPI.DOUBLE], [all_x, MPI.DOUBLE])
y = A @ all_x

result = np.empty(size) if comm.rank == 0 else None
comm.Gather(y, result, root=0)
if comm.rank == 0:
    i = np.arange(size)
    expected = (1.0 / (i[:, None] + i + 1)) @ i
    print("y is right:", np.allclose(result, expected), f"|y| = {np.linalg.norm(result):.9f}")
